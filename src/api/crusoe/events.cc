#include "api/crusoe/events.h"

#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace hutch::api::crusoe {

using engine::OutputStream;

void EventWriter::event(std::string& out, std::string_view name, std::string_view json) {
  out += "id: ";
  out += std::to_string(++last_id_);
  out += "\nevent: ";
  out += name;
  out += "\ndata: ";
  out += json;
  out += "\n\n";
}

void EventWriter::start(std::string& out, std::string_view sandbox_id) {
  json::Writer writer;
  writer.begin_object().key("sandbox_id").string(sandbox_id).end_object();
  event(out, "start", writer.take());
}

void EventWriter::piece(std::string& out, OutputStream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  if (stream == OutputStream::err) in_line_ = bytes.back() != '\n';
  json::Writer writer;
  writer.begin_object();
  if (utf8::is_valid(bytes)) {
    writer.key("text").string(bytes);
  } else {
    writer.key("b64").base64(bytes);
  }
  writer.end_object();
  event(out, stream == OutputStream::out ? "stdout" : "stderr", writer.take());
}

void EventWriter::output(std::string& out, engine::OutputPiece given) {
  std::string& unfinished = unfinished_[static_cast<std::size_t>(given.stream)];
  std::string bytes = std::move(given.bytes);
  if (!unfinished.empty()) bytes.insert(0, std::exchange(unfinished, {}));
  const std::size_t cut = bytes.size() - utf8::unfinished_suffix(bytes);
  unfinished = bytes.substr(cut);
  piece(out, given.stream, std::string_view(bytes).substr(0, cut));
}

void EventWriter::end_output(std::string& out, std::string_view our_line) {
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    const std::string rest = std::exchange(unfinished_[static_cast<std::size_t>(stream)], {});
    piece(out, stream, rest);
  }
  if (our_line.empty()) return;
  std::string line = in_line_ ? "\n" : "";
  piece(out, OutputStream::err, line.append(our_line));
}

void EventWriter::file(std::string& out, const AnswerFile& file) {
  event(out, "file", encode(file));
}

void EventWriter::exit(std::string& out, const ExecuteAnswer& answer) {
  event(out, "exit", encode_end(answer));
}

void EventWriter::error(std::string& out, std::string_view json) { event(out, "error", json); }

}  // namespace hutch::api::crusoe
