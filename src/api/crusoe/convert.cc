#include "api/crusoe/convert.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "base/utf8.h"

namespace hutch::api::crusoe {
namespace {

constexpr int kExitTimeout = -1;
constexpr int kSignalBase = 128;
constexpr int kExitMemory = 137;  // 128 + SIGKILL, as shells show it

void end_line(std::string& text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
}

// `bytes` without a copy where they are text already.
std::string to_text(std::string bytes) {
  return utf8::is_valid(bytes) ? std::move(bytes) : utf8::replace_invalid(bytes);
}

std::string to_text(model::StreamText stream) {
  if (stream.dropped_bytes == 0) return to_text(std::move(stream.head));
  const std::size_t cut = utf8::unfinished_suffix(stream.head);
  stream.head.resize(stream.head.size() - cut);
  std::string_view tail = stream.tail;
  tail.remove_prefix(utf8::orphaned_prefix(tail));
  const std::uint64_t dropped = stream.total_bytes - stream.head.size() - tail.size();
  std::string text = to_text(std::move(stream.head));
  end_line(text);
  text += dropped_line(dropped) + "\n";
  return text += utf8::replace_invalid(tail);
}

int exit_code(const model::Outcome& outcome) {
  switch (outcome.cause) {
    case model::Cause::timeout: return kExitTimeout;
    case model::Cause::memory: return kExitMemory;
    case model::Cause::exited:
    case model::Cause::signaled:
    case model::Cause::processes:
    case model::Cause::disk:
    case model::Cause::cancelled:
    case model::Cause::lost: break;
  }
  return outcome.by_signal ? kSignalBase + outcome.status : outcome.status;
}

std::string memory_line(const std::optional<std::uint64_t>& limit) {
  if (!limit) return "memory limit exceeded\n";
  std::string line = "memory limit of " + std::to_string(*limit) + " bytes ";
  if (*limit % 1_MiB == 0) line += "(" + std::to_string(*limit / 1_MiB) + " MiB) ";
  return line + "exceeded\n";
}

void append_our_line(std::string& text, const model::Outcome& outcome, std::uint32_t timeout_s) {
  if (outcome.cause == model::Cause::timeout) {
    end_line(text);
    text += "timed out after " + std::to_string(timeout_s) + "s";
  } else if (outcome.cause == model::Cause::memory) {
    end_line(text);
    text += memory_line(outcome.limit);
  }
}

AnswerEnd to_end(const model::Outcome& outcome) {
  AnswerEnd end{.cause = model::cause_name(outcome.cause), .cpu_ms = outcome.cpu_ms};
  if (outcome.by_signal) end.signal = signal_name(outcome.status);
  if (outcome.memory_peak_bytes > 0) end.memory_peak_bytes = outcome.memory_peak_bytes;
  end.limit = outcome.limit;
  end.waived = outcome.waived;
  return end;
}

void take_files(ExecuteAnswer& answer, model::ShotResult& result, Report report) {
  const bool all = report == Report::full;
  if (all || !result.files.empty()) {
    auto& files = answer.files.emplace();
    for (model::OutputFile& file : result.files) {
      std::string type = model::mime_type(file.path, file.bytes);
      files.push_back({std::move(file.path), std::move(type), std::move(file.bytes)});
    }
  }
  if (all || !result.omitted.empty()) {
    auto& omitted = answer.files_omitted.emplace();
    for (model::OmittedFile& file : result.omitted) {
      omitted.push_back({std::move(file.path), file.size, model::omit_reason_name(file.reason)});
    }
  }
  if (result.omitted_count > result.omitted.size()) {
    answer.files_omitted_count = result.omitted_count;
  }
  if (all || !result.deleted.empty()) answer.files_deleted = std::move(result.deleted);
}

}  // namespace

Result<model::ShotSpec> to_shot_spec(ExecuteRequest request) {
  model::ShotSpec spec{.code = std::move(request.code),
                       .args = std::move(request.args),
                       .timeout_s = request.timeout_s};
  spec.files.reserve(request.files.size());
  for (RequestFile& file : request.files) {
    if (auto problem = model::path_problem(file.path)) {
      return fail(ErrorCode::rejected, std::move(*problem));
    }
    spec.files.push_back({std::move(file.path), std::move(file.bytes)});
  }
  if (auto problem = model::collision_problem(spec.files)) {
    return fail(ErrorCode::rejected, std::move(*problem));
  }
  return spec;
}

ExecuteAnswer to_answer(service::ShotAnswer shot, std::uint32_t timeout_s, Report report) {
  model::ShotResult& result = shot.result;
  const model::Outcome& outcome = result.outcome;
  const bool dropped = result.out.dropped_bytes > 0 || result.err.dropped_bytes > 0;
  const bool plain = outcome.waived.empty() && (outcome.cause == model::Cause::exited ||
                                                outcome.cause == model::Cause::timeout);

  ExecuteAnswer answer{.sandbox_id = std::move(shot.sandbox_id)};
  answer.exit_code = exit_code(outcome);
  answer.duration_ms = result.duration_ms;
  take_files(answer, result, report);
  if (report == Report::full || dropped || !plain) answer.end = to_end(outcome);
  if (report == Report::full || dropped) {
    answer.stdout_bytes = result.out.total_bytes;
    answer.stderr_bytes = result.err.total_bytes;
  }
  answer.stdout_text = to_text(std::move(result.out));
  answer.stderr_text = to_text(std::move(result.err));
  append_our_line(answer.stderr_text, outcome, timeout_s);
  return answer;
}

PoolAnswer to_answer(const service::PoolNumbers& numbers) {
  return {numbers.warm, numbers.target, numbers.in_flight, numbers.created_total};
}

std::string dropped_line(std::uint64_t bytes) {
  return "[hutch: " + std::to_string(bytes) + " bytes dropped here]";
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return "SIG" + (name == nullptr ? std::to_string(signal) : std::string(name));
}

}  // namespace hutch::api::crusoe
