#include "engine/piece_writer.h"

#include <span>
#include <utility>

#include "base/sys.h"
#include "base/units.h"

namespace hutch::engine {

void PieceWriter::add(std::string piece) {
  owned_.push_back(std::move(piece));
  add_view(owned_.back());
}

void PieceWriter::add_view(std::string_view piece) {
  if (!piece.empty()) pieces_.push_back(piece);
}

Result<std::size_t> PieceWriter::write_some(int socket) {
  std::size_t total = 0;
  while (at_ < pieces_.size() && total < 1_MiB) {
    std::string_view& piece = pieces_[at_];
    const std::string_view portion = piece.substr(0, 1_MiB - total);
    const std::size_t put = TRY(sys::send_some(socket, std::as_bytes(std::span(portion))));
    if (put == 0) break;
    total += put;
    piece.remove_prefix(put);
    if (piece.empty()) ++at_;
  }
  return total;
}

}  // namespace hutch::engine
