// Files go in and come back through a process inside the sandbox, on the real kernel.
#include <sodium.h>

#include <algorithm>

#include "base/sys.h"
#include "plan/courier_wire.h"
#include "warden_client.h"

namespace hutch::kernel_test {
namespace {

using plan::RecordKind;
using plan::RecordReason;
using warden::Ask;
using warden::Tell;

struct File {
  std::string path;
  std::string bytes;
};

struct Record {
  RecordKind kind{};
  RecordReason reason{};
  std::string path;
  std::uint64_t size = 0;
  std::string bytes;
};

template <class T>
void put(std::string* out, T number) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

bool read_exact(int fd, void* into, std::size_t size) {
  auto* at = static_cast<std::byte*>(into);
  while (size > 0) {
    const auto got = sys::read_some(fd, std::span(at, size));
    if (!got || got->size == 0) return false;
    at += got->size;
    size -= got->size;
  }
  return true;
}

std::string digest(const std::string& bytes) {
  std::string out(plan::kDigestBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return out;
}

class CourierTest : public KernelTest {
 protected:
  plan::Verdict send_in(const Sandbox& sandbox, const std::vector<File>& files) {
    client().ask(Ask::files_in, sandbox.handle);
    Told told = client().next();
    EXPECT_EQ(told.report.tell, Tell::courier) << step_name(told.report.step);
    std::string message;
    put(&message, plan::kMagicIn);
    put(&message, static_cast<std::uint32_t>(files.size()));
    for (const File& file : files) {
      put(&message, static_cast<std::uint32_t>(file.path.size()));
      put(&message, static_cast<std::uint64_t>(file.bytes.size()));
      message += file.path + file.bytes;
    }
    EXPECT_TRUE(sys::write_all(told.fds.at(0).get(), message));
    plan::Verdict verdict;
    EXPECT_TRUE(read_exact(told.fds.at(0).get(), &verdict, sizeof verdict));
    EXPECT_EQ(client().next().report.tell, Tell::courier_ended);
    return verdict;
  }

  std::vector<Record> fetch_out(const Sandbox& sandbox, const std::vector<File>& sent,
                                std::uint64_t file_bytes = 4 << 20,
                                std::uint64_t files_bytes = 16 << 20,
                                std::uint32_t files_count = 100) {
    client().ask(Ask::files_out, sandbox.handle);
    Told told = client().next();
    EXPECT_EQ(told.report.tell, Tell::courier) << step_name(told.report.step);
    std::string message;
    put(&message, plan::kMagicOut);
    put(&message, file_bytes);
    put(&message, files_bytes);
    put(&message, files_count);
    put(&message, static_cast<std::uint32_t>(sent.size()));
    for (const File& file : sent) {
      put(&message, static_cast<std::uint32_t>(file.path.size()));
      put(&message, static_cast<std::uint64_t>(file.bytes.size()));
      message += digest(file.bytes) + file.path;
    }
    const int stream = told.fds.at(0).get();
    EXPECT_TRUE(sys::write_all(stream, message));
    std::vector<Record> records;
    for (;;) {
      Record record;
      std::uint8_t head[2]{};
      std::uint32_t path_size = 0;
      if (!read_exact(stream, head, sizeof head) || !read_exact(stream, &path_size, 4) ||
          !read_exact(stream, &record.size, 8)) {
        ADD_FAILURE() << "the stream ends early";
        break;
      }
      record.kind = static_cast<RecordKind>(head[0]);
      record.reason = static_cast<RecordReason>(head[1]);
      record.path.resize(path_size);
      EXPECT_TRUE(read_exact(stream, record.path.data(), path_size));
      if (record.kind == RecordKind::file) {
        record.bytes.resize(record.size);
        EXPECT_TRUE(read_exact(stream, record.bytes.data(), record.size));
      }
      records.push_back(record);
      if (record.kind == RecordKind::end) break;
    }
    const warden::Report ended = client().next().report;
    EXPECT_EQ(ended.tell, Tell::courier_ended);
    EXPECT_EQ(ended.status, 0);
    return records;
  }
};

TEST_F(CourierTest, CarriesBytesInAndOut) {
  Sandbox sandbox = client().create();
  const std::vector<File> files = {{"a/b/c.bin", std::string("\0\xff\n", 3)},
                                   {"plain.txt", "hello"},
                                   {"gone.txt", "x"},
                                   {"changed.txt", "old"}};
  EXPECT_EQ(send_in(sandbox, files).verdict, plan::CourierVerdict::ok);
  const ProgramRun run = client().run(&sandbox,
                                      "import os\n"
                                      "print(open('a/b/c.bin','rb').read())\n"
                                      "os.remove('gone.txt')\n"
                                      "open('changed.txt','w').write('new')\n"
                                      "open('a/made.txt','w').write('made')\n"
                                      "os.symlink('/etc/passwd','link')\n");
  EXPECT_EQ(run.out, "b'\\x00\\xff\\n'\n") << run.err;
  const auto records = fetch_out(sandbox, files);
  std::vector<std::string> lines;
  for (const Record& record : records) {
    lines.push_back(std::to_string(static_cast<int>(record.kind)) + " " + record.path + " " +
                    record.bytes);
  }
  const std::vector<std::string> expected = {
      "3 a/b/c.bin ", "1 a/made.txt made", "1 changed.txt new", "2 link ", "3 plain.txt ", "4  "};
  EXPECT_EQ(lines, expected);
  client().destroy(sandbox);
}

TEST_F(CourierTest, KillsWhatIsLeftBeforeItReads) {
  Sandbox sandbox = client().create();
  const ProgramRun run = client().run(&sandbox,
                                      "import os, signal, sys\n"
                                      "for i in range(20):\n"
                                      "    if os.fork() == 0:\n"
                                      "        os.setsid()\n"
                                      "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                                      "        while True:\n"
                                      "            open(f'grow{i}', 'a').write('x')\n"
                                      "open('done', 'w').write('1')\n"
                                      "os._exit(0)\n");
  EXPECT_EQ(run.ended.status, 0);
  const auto records = fetch_out(sandbox, {});
  EXPECT_EQ(records.back().kind, RecordKind::end);
  EXPECT_TRUE(std::any_of(records.begin(), records.end(),
                          [](const Record& record) { return record.path == "done"; }));
  client().destroy(sandbox);
}

TEST_F(CourierTest, SaysThatFilesDoNotFit) {
  warden::WardenOptions options = new_options();
  options.spec.disk_bytes = 4 << 20;
  restart(options);
  Sandbox sandbox = client().create();
  const std::vector<File> files = {
      {"first", "1"}, {"large", std::string(5 << 20, 'x')}, {"last", "3"}};
  const plan::Verdict verdict = send_in(sandbox, files);
  EXPECT_EQ(verdict.verdict, plan::CourierVerdict::no_space);
  EXPECT_EQ(verdict.file_index, 1U);
  client().destroy(sandbox);
}

TEST_F(CourierTest, RefusesAPathThatTheEngineShouldNeverSend) {
  Sandbox sandbox = client().create();
  EXPECT_EQ(send_in(sandbox, {{"../escape", "x"}}).verdict, plan::CourierVerdict::bad_path);
  client().destroy(sandbox);
}

TEST_F(CourierTest, HoldsTheLimitsOfWhatComesBack) {
  Sandbox sandbox = client().create();
  client().run(&sandbox,
               "open('exact', 'wb').write(b'e' * 100)\n"
               "open('over', 'wb').write(b'o' * 101)\n"
               "open('second', 'wb').write(b's' * 100)\n"
               "open('third', 'wb').write(b't' * 60)\n");
  const auto records = fetch_out(sandbox, {}, 100, 250, 3);
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[0].path, "exact");
  EXPECT_EQ(records[0].kind, RecordKind::file);
  EXPECT_EQ(records[1].reason, RecordReason::too_large);
  EXPECT_EQ(records[2].kind, RecordKind::file);
  EXPECT_EQ(records[3].reason, RecordReason::total);
  EXPECT_EQ(records[4].size, 2U);
  client().destroy(sandbox);
}

TEST_F(CourierTest, GoesOnlyInItsOrder) {
  Sandbox sandbox = client().create();
  client().ask(Ask::files_out, sandbox.handle);
  EXPECT_EQ(client().next().report.tell, Tell::courier_failed);
  client().run(&sandbox, "pass");
  client().ask(Ask::files_in, sandbox.handle);
  EXPECT_EQ(client().next().report.tell, Tell::courier_failed);
  client().destroy(sandbox);
}

}  // namespace
}  // namespace hutch::kernel_test
