#include "warden_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/sys.h"
#include "image/store.h"

namespace hutch::kernel_test {
namespace {

namespace fs = std::filesystem;

std::array<std::uint8_t, 32> digest_bytes(const std::string& hex) {
  std::array<std::uint8_t, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 1 < hex.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

std::string drain(int fd) {
  std::string text;
  std::array<std::byte, 65536> chunk{};
  for (;;) {
    const auto got = sys::read_some(fd, chunk);
    if (!got || got->would_block || got->size == 0) return text;
    text.append(reinterpret_cast<const char*>(chunk.data()), got->size);
  }
}

std::vector<std::string> groups_named(const std::string& name) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it("/sys/fs/cgroup", error), end; it != end;
       it.increment(error)) {
    if (error) break;
    if (it->path().filename() == name) found.push_back(it->path().string());
  }
  return found;
}

std::multiset<std::string> host_mounts() {
  std::multiset<std::string> mounts;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) mounts.insert(line);
  return mounts;
}

std::size_t open_descriptors() {
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

double slack() {
  const char* text = std::getenv("HUTCH_TEST_SLACK");
  return text == nullptr ? 1.0 : std::max(1.0, std::atof(text));
}

warden::WardenOptions default_options() {
  const char* images = std::getenv("HUTCH_TEST_IMAGE_STATE");
  const auto image = image::open_image(images == nullptr ? "/var/lib/hutch" : images, "python");
  EXPECT_TRUE(image) << "no image: type ./dev test, or hutch image build python";
  warden::WardenOptions options;
  std::string directory = "/tmp/hutch-kernel-test-XXXXXX";
  EXPECT_NE(::mkdtemp(directory.data()), nullptr);
  options.state_dir = directory;
  options.instance = "test" + directory.substr(directory.size() - 6);
  for (char& letter : options.instance) letter = static_cast<char>(std::tolower(letter));
  options.spec = {.memory_bytes = 512ULL << 20U,
                  .cpus = 1.0,
                  .processes = 128,
                  .open_files = 1024,
                  .disk_bytes = 256ULL << 20U,
                  .inodes = 65536,
                  .shm_bytes = 64ULL << 20U,
                  .python = {},
                  .env = {},
                  .home_links = {}};
  if (image) {
    options.image_path = image->path;
    options.image_is_file = image->is_erofs;
    options.image_digest = digest_bytes(image->digest);
    options.spec.python = image->config.python;
    options.spec.env = {image->config.env.begin(), image->config.env.end()};
  }
  return options;
}

WardenClient::WardenClient(const warden::WardenOptions& options) : options_(options) {
  auto started = warden::start_warden(options_);
  EXPECT_TRUE(started) << (started ? "" : describe(started.error()));
  if (started) connection_ = std::move(*started);
}

WardenClient::~WardenClient() {
  close();
  std::error_code error;
  fs::remove_all(options_.state_dir, error);
}

int WardenClient::close() {
  if (closed_) return 0;
  closed_ = true;
  connection_.socket.reset();
  int status = 0;
  if (connection_.pid <= 0) return status;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, connection_.pid, 0)));
  pollfd ending{process.get(), POLLIN, 0};
  const int ended = ::poll(&ending, 1, static_cast<int>(30'000 * slack()));
  EXPECT_EQ(ended, 1) << "the warden does not end";
  if (ended != 1) ::kill(connection_.pid, SIGKILL);
  ::waitpid(connection_.pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void WardenClient::ask(warden::Ask ask, std::uint64_t handle, std::uint32_t timeout_ms) {
  warden::Request request;
  request.ask = ask;
  request.handle = handle;
  request.timeout_ms = timeout_ms;
  request.image = options_.image_digest;
  const auto sent = sys::send_message(socket(), std::as_bytes(std::span(&request, 1)), {});
  EXPECT_TRUE(sent);
}

Told WardenClient::next(double seconds) {
  Told told;
  pollfd waiting{socket(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, static_cast<int>(seconds * 1000 * slack()));
  EXPECT_EQ(ready, 1) << "the warden says nothing";
  if (ready != 1) return told;
  auto message = sys::receive_message(socket(), std::as_writable_bytes(std::span(&told.report, 1)));
  EXPECT_TRUE(message && message->size == sizeof told.report) << "the warden has ended";
  if (message) told.fds = std::move(message->fds);
  return told;
}

Sandbox WardenClient::create() {
  Sandbox sandbox;
  sandbox.handle = ++last_handle_;
  ask(warden::Ask::create, sandbox.handle);
  Told told = next();
  EXPECT_EQ(told.report.tell, warden::Tell::created)
      << "step " << step_name(told.report.step) << " errno " << told.report.sys_errno;
  sandbox.created = told.report;
  if (told.fds.size() != 3) return sandbox;
  sandbox.code = std::move(told.fds[0]);
  sandbox.out = std::move(told.fds[1]);
  sandbox.err = std::move(told.fds[2]);
  const std::string imports = R"({"imports":[]})";
  const auto size = static_cast<std::uint32_t>(imports.size());
  std::string hello(reinterpret_cast<const char*>(&size), sizeof size);
  hello += imports;
  EXPECT_TRUE(sys::write_all(sandbox.code.get(), hello));
  std::byte ready{};
  const auto got = sys::read_some(sandbox.code.get(), std::span(&ready, 1));
  EXPECT_TRUE(got && got->size == 1 && ready == std::byte{'R'}) << drain(sandbox.err.get());
  return sandbox;
}

ProgramRun WardenClient::run(Sandbox* sandbox, const std::string& code, std::uint32_t timeout_ms) {
  ask(warden::Ask::arm, sandbox->handle, timeout_ms);
  const auto size = static_cast<std::uint64_t>(code.size());
  std::string message(4, '\0');  // no arguments
  message.append(reinterpret_cast<const char*>(&size), sizeof size);
  message += code;
  EXPECT_TRUE(sys::write_all(sandbox->code.get(), message));
  EXPECT_TRUE(sys::set_nonblocking(sandbox->out.get()));
  EXPECT_TRUE(sys::set_nonblocking(sandbox->err.get()));
  ProgramRun run;
  for (bool ended = false; !ended;) {
    std::array<pollfd, 3> waiting{
        {{socket(), POLLIN, 0}, {sandbox->out.get(), POLLIN, 0}, {sandbox->err.get(), POLLIN, 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(90'000 * slack()));
    EXPECT_GT(ready, 0) << "nothing happens";
    if (ready <= 0) return run;
    if (waiting[0].revents != 0) {
      run.ended = next().report;
      EXPECT_EQ(run.ended.tell, warden::Tell::ended);
      ended = true;
    }
    run.out += drain(sandbox->out.get());
    run.err += drain(sandbox->err.get());
    // A pipe at its end stays readable: the loop ends with the report, not with the pipes.
  }
  return run;
}

void WardenClient::destroy(const Sandbox& sandbox) {
  ask(warden::Ask::destroy, sandbox.handle);
  const Told told = next();
  EXPECT_EQ(told.report.tell, warden::Tell::destroyed);
  EXPECT_EQ(told.report.flags & warden::kQuarantined, 0U);
}

void KernelTest::SetUp() {
  // Orphans of a warden come to us, so that none can hide behind the host's init.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  mounts_ = host_mounts();
  descriptors_ = open_descriptors();
}

void KernelTest::TearDown() {
  client_.reset();
  EXPECT_EQ(mounts_, host_mounts());
  EXPECT_EQ(descriptors_, open_descriptors());
  for (const std::string& instance : instances_) {
    EXPECT_EQ(groups_named("hutch-" + instance), std::vector<std::string>{});
  }
  int status = 0;
  EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a process is left";
}

warden::WardenOptions KernelTest::new_options() {
  warden::WardenOptions options = default_options();
  instances_.push_back(options.instance);
  return options;
}

WardenClient& KernelTest::restart(const warden::WardenOptions& options) {
  client_.reset();
  client_ = std::make_unique<WardenClient>(options);
  return *client_;
}

WardenClient& KernelTest::client() { return client_ ? *client_ : restart(new_options()); }

}  // namespace hutch::kernel_test
