// The three locks of a store, all by flock(2), so that the kernel lets go of them with the process:
//   the builds' lock   images/build.lock, held by a build or an unpacking from start to end
//   the store's lock   the directory images/ itself, for the moments in which names and images
//                      appear or go; whoever wants both takes the builds' first
//   an image's lock    its content itself (file or directory): shared by everybody who uses it for
//                      as long as they do, exclusive for whoever removes it
// The content is never replaced in place, so a lock on it means one thing for good; metadata and
// names are replaced by rename and could not carry one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "image/store.h"

namespace hutch::image {

// Waits 10 s at most: state_in_use beyond.
Result<Fd> lock_store(const Layout& layout);

// Waits for as long as it takes, and tells `progress` so. `interrupt_fd` becoming readable ends
// that with `cancelled`; -1: never.
Result<Fd> take_builds_lock(const Layout& layout, int interrupt_fd,
                            const std::function<void(std::string_view)>& progress);

// Nothing while a build runs, and where the file cannot be opened.
std::optional<Fd> try_builds_lock(const Layout& layout);

// Keeps the image where it is until the descriptor is closed, in this process and in those forked
// from it. Errors: no_image (it was removed meanwhile), state_in_use, io.
Result<Fd> hold_image(const Image& image);

// The exclusive lock on the content of an image. Error: state_in_use, naming who holds it.
Result<Fd> take_from_users(const std::string& path);

// Whether somebody uses the image of that content now. False where it cannot be opened.
bool is_held(const std::string& path);

}  // namespace hutch::image
