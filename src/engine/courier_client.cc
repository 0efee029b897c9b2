#include "engine/courier_client.h"

#include <sodium/crypto_generichash.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::engine {
namespace {

Error lost(Step step, const char* what) { return {ErrorCode::sandbox_lost, step, 0, what}; }

std::string digest_of(const std::string& bytes) {
  std::string digest(plan::kDigestBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return digest;
}

void add_files(PieceWriter& writer, const model::ShotSpec& spec) {
  writer.add(wire_bytes(plan::kMagicIn) +
             wire_bytes(static_cast<std::uint32_t>(spec.files.size())));
  for (const auto& file : spec.files) {
    const std::string path = model::normalized_path(file.path);
    writer.add(wire_bytes(static_cast<std::uint32_t>(path.size())) +
               wire_bytes(std::uint64_t{file.bytes.size()}) + path);
    writer.add_view(file.bytes);
  }
}

std::string manifest(const model::ShotSpec& spec, const model::Limits& limits) {
  std::string bytes = wire_bytes(plan::kMagicOut) + wire_bytes(limits.file_bytes) +
                      wire_bytes(limits.files_bytes) + wire_bytes(limits.files_count) +
                      wire_bytes(static_cast<std::uint32_t>(spec.files.size()));
  for (const auto& file : spec.files) {
    const std::string path = model::normalized_path(file.path);
    bytes += wire_bytes(static_cast<std::uint32_t>(path.size())) +
             wire_bytes(std::uint64_t{file.bytes.size()}) + digest_of(file.bytes) + path;
  }
  return bytes;
}

}  // namespace

FilesInClient::FilesInClient(boost::asio::io_context& io, WatchedFd stream,
                             std::shared_ptr<const model::ShotSpec> spec,
                             const CourierOptions& options, Done done)
    : stream_(std::move(stream)),
      spec_(std::move(spec)),
      idle_(options.idle),
      done_(std::move(done)),
      timer_(io) {}

void FilesInClient::start() {
  add_files(writer_, *spec_);
  expect_progress();
  const auto weak = weak_from_this();
  stream_.when_writable([weak] {
    if (const auto self = weak.lock()) self->write_more();
  });
  stream_.when_readable([weak] {
    if (const auto self = weak.lock()) self->read_verdict();
  });
}

void FilesInClient::expect_progress() {
  timer_.expires_after(idle_);
  const auto weak = weak_from_this();
  timer_.async_wait([weak](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    self->end(fail(lost(Step::files_in, "the process that writes the files stood still")));
  });
}

void FilesInClient::write_more() {
  // A courier that has closed may have left its verdict behind: that is read before its end counts.
  const auto wrote = writer_.write_some(stream_.get());
  if (!wrote) return;
  if (*wrote > 0) expect_progress();
  if (writer_.finished()) return;
  const auto weak = weak_from_this();
  stream_.when_writable([weak] {
    if (const auto self = weak.lock()) self->write_more();
  });
}

void FilesInClient::read_verdict() {
  std::array<std::byte, sizeof(plan::Verdict)> buffer{};
  const std::size_t wanted = buffer.size() - answer_.size();
  const auto got = sys::read_some(stream_.get(), std::span(buffer).first(wanted));
  if (!got || (got->size == 0 && !got->would_block)) {
    end(fail(lost(Step::files_in, "the process that writes the files died")));
    return;
  }
  answer_.append(reinterpret_cast<const char*>(buffer.data()), got->size);
  if (answer_.size() == sizeof(plan::Verdict)) {
    plan::Verdict verdict;
    std::memcpy(&verdict, answer_.data(), sizeof verdict);
    end(verdict);
    return;
  }
  const auto weak = weak_from_this();
  stream_.when_readable([weak] {
    if (const auto self = weak.lock()) self->read_verdict();
  });
}

// May destroy this object.
void FilesInClient::end(Result<plan::Verdict> result) {
  timer_.cancel();
  stream_.reset();
  if (const auto done = std::exchange(done_, {})) done(std::move(result));
}

FilesOutClient::FilesOutClient(boost::asio::io_context& io, WatchedFd stream,
                               std::shared_ptr<const model::ShotSpec> spec,
                               const CourierOptions& options, Done done)
    : stream_(std::move(stream)),
      idle_(options.idle),
      done_(std::move(done)),
      timer_(io),
      reply_(options.limits, spec->files) {
  writer_.add(manifest(*spec, options.limits));
}

void FilesOutClient::start() {
  expect_progress();
  const auto weak = weak_from_this();
  stream_.when_writable([weak] {
    if (const auto self = weak.lock()) self->write_more();
  });
  stream_.when_readable([weak] {
    if (const auto self = weak.lock()) self->read_more();
  });
}

void FilesOutClient::expect_progress() {
  timer_.expires_after(idle_);
  const auto weak = weak_from_this();
  timer_.async_wait([weak](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    self->end(fail(ErrorCode::unreadable_reply, Step::files_out,
                   "the process that reads the files stood still"));
  });
}

void FilesOutClient::write_more() {
  const auto wrote = writer_.write_some(stream_.get());
  if (!wrote) return;  // its end is seen where its answer is read
  if (*wrote > 0) expect_progress();
  if (writer_.finished()) return;
  const auto weak = weak_from_this();
  stream_.when_writable([weak] {
    if (const auto self = weak.lock()) self->write_more();
  });
}

void FilesOutClient::read_more() {
  std::array<std::byte, 65536> buffer;
  std::size_t total = 0;
  while (total < 1_MiB) {
    const auto got = sys::read_some(stream_.get(), buffer);
    if (got && got->would_block) break;
    if (!got || got->size == 0) {
      end(fail(lost(Step::files_out, "the process that reads the files died")));
      return;
    }
    total += got->size;
    if (const auto fed = reply_.feed(std::span(buffer).first(got->size)); !fed) {
      end(fail(fed.error()));
      return;
    }
    if (reply_.complete()) {
      end(reply_.take());
      return;
    }
  }
  if (total > 0) expect_progress();
  const auto weak = weak_from_this();
  stream_.when_readable([weak] {
    if (const auto self = weak.lock()) self->read_more();
  });
}

// May destroy this object.
void FilesOutClient::end(Result<ReturnedFiles> result) {
  timer_.cancel();
  stream_.reset();
  if (const auto done = std::exchange(done_, {})) done(std::move(result));
}

}  // namespace hutch::engine
