// The stream of events that POST /v1/execute answers with when it is asked to: one run as text for
// `text/event-stream`. Pure; every function appends to what its caller will send.
//
//   start   {"sandbox_id":...}                         the program has its code
//   stdout, stderr  {"text":...} or {"b64":...}        a piece of output, in the order of reading
//   file    {"path","size","type","content_b64"}       one each, after the program's end
//   exit    the plain answer without what came before  the last one
//   error   {"error":...}                              the last one: no end can be told
//
// All pieces of a stream together are what the program wrote, byte for byte.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/crusoe/wire.h"
#include "engine/live_output.h"

namespace hutch::api::crusoe {

class EventWriter {
 public:
  void start(std::string& out, std::string_view sandbox_id);
  // A character whose end has not come is kept for the next piece of its stream.
  void output(std::string& out, engine::OutputPiece piece);
  // After the last piece. `our_line` is what the door adds to standard error, on a line of its own;
  // empty for nothing.
  void end_output(std::string& out, std::string_view our_line);
  void file(std::string& out, const AnswerFile& file);
  void exit(std::string& out, const ExecuteAnswer& answer);
  // `json` is {"error":...}.
  void error(std::string& out, std::string_view json);

  // A line that no event comes of; says that the connection lives.
  static constexpr std::string_view kStillRunning = ": still running\n\n";

 private:
  void event(std::string& out, std::string_view name, std::string_view json);
  void piece(std::string& out, engine::OutputStream stream, std::string_view bytes);

  std::uint64_t last_id_ = 0;
  std::array<std::string, 2> unfinished_;  // the beginning of a character, of each stream
  bool in_line_ = false;                   // standard error does not stand at a line's start
};

}  // namespace hutch::api::crusoe
