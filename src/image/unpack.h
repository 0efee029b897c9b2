// Makes a directory image out of an erofs one, for hosts and users that cannot mount erofs. The
// digest stays: it names the content, however that lies in the store.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/store.h"

namespace hutch::image {

struct UnpackOptions {
  std::string from_state_dir;  // where the image is; only read
  std::string to_state_dir;    // where the directory goes; may be the same
  std::string name;            // or a digest
  int interrupt_fd = -1;       // readable: clean up and return `cancelled`
};

// An image that is a directory there already is left as it is. Needs fsck.erofs (erofs-utils), and
// no privilege. Errors: no_image, not_found (the tool, with the apt line for it), cancelled,
// disk_full, io (the end of what the tool said).
Result<Image> unpack_image(const UnpackOptions& options,
                           const std::function<void(std::string_view)>& progress);

}  // namespace hutch::image
