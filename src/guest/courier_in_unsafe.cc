// Writes the caller's files into the working directory, as the program's own user, before its code
// starts. Nothing of the tenant has run yet, but the paths are the tenant's: every one is resolved
// beneath the directory and through no link.
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/stream.h"
#include "plan/courier_wire.h"

namespace hutch::guest {
namespace {

using plan::CourierVerdict;

struct Job {
  int stream = -1;
  int work = -1;
  plan::Verdict verdict;
  char path[plan::kPathBytesMax + 1];
  char chunk[65536];
};

void give_up(Job* job, CourierVerdict verdict, int error, std::uint32_t index) {
  if (job->verdict.verdict != CourierVerdict::ok) return;
  job->verdict = {verdict, error, index};
}

// A failed call that writes: full is told apart from broken.
void give_up_writing(Job* job, int error, std::uint32_t index) {
  CourierVerdict verdict = CourierVerdict::io;
  struct statfs info {};
  if (error == ENOSPC) {
    const bool inodes = fstatfs(job->work, &info) == 0 && info.f_ffree == 0;
    verdict = inodes ? CourierVerdict::no_inodes : CourierVerdict::no_space;
  } else if (error == ELOOP || error == EXDEV || error == ENOTDIR || error == EEXIST ||
             error == EISDIR || error == ENAMETOOLONG) {
    verdict = CourierVerdict::bad_path;
  }
  give_up(job, verdict, error, index);
}

int create_file(int work, const char* path) {
  open_how how{};
  how.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  how.mode = 0644;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(syscall(SYS_openat2, work, path, &how, sizeof how));
}

// Makes the directories that lead to the path; returns 0 or errno.
int make_parents(int work, char* path) {
  for (char* slash = strchr(path, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    const int error = mkdirat(work, path, 0755) == 0 || errno == EEXIST ? 0 : errno;
    *slash = '/';
    if (error != 0) return error;
  }
  return 0;
}

int open_target(Job* job, std::uint32_t index) {
  int fd = create_file(job->work, job->path);
  if (fd < 0 && errno == ENOENT) {
    const int error = make_parents(job->work, job->path);
    if (error != 0) {
      give_up_writing(job, error, index);
      return -1;
    }
    fd = create_file(job->work, job->path);
  }
  if (fd < 0) give_up_writing(job, errno, index);
  return fd;
}

// Reads the data of one file off the stream; writes it unless an earlier failure decided already.
bool take_data(Job* job, int fd, std::uint64_t size, std::uint32_t index) {
  while (size > 0) {
    const std::size_t part = size < sizeof job->chunk ? size : sizeof job->chunk;
    if (!read_exact(job->stream, job->chunk, part)) return false;
    size -= part;
    for (std::size_t done = 0; fd >= 0 && done < part;) {
      const ssize_t put = write(fd, job->chunk + done, part - done);
      if (put < 0) {
        give_up_writing(job, errno, index);
        break;
      }
      done += static_cast<std::size_t>(put);
    }
  }
  return true;
}

bool take_file(Job* job, std::uint32_t index) {
  std::uint32_t path_size = 0;
  std::uint64_t size = 0;
  if (!read_exact(job->stream, &path_size, sizeof path_size)) return false;
  if (!read_exact(job->stream, &size, sizeof size)) return false;
  if (path_size == 0 || path_size > plan::kPathBytesMax) return false;
  if (!read_exact(job->stream, job->path, path_size)) return false;
  job->path[path_size] = '\0';
  if (strlen(job->path) != path_size) give_up(job, CourierVerdict::bad_path, EINVAL, index);
  const bool wanted = job->verdict.verdict == CourierVerdict::ok;
  const int fd = wanted ? open_target(job, index) : -1;
  const bool whole = take_data(job, fd, size, index);
  if (fd >= 0) close(fd);
  return whole;
}

}  // namespace

int carry_files_in(int stream) {
  static Job job;  // large, and this process does nothing else
  job.stream = stream;
  job.work = open("/work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t head[2]{};
  bool whole = job.work >= 0 && read_exact(stream, head, sizeof head) && head[0] == plan::kMagicIn;
  for (std::uint32_t index = 0; whole && index < head[1]; ++index) whole = take_file(&job, index);
  if (!whole) give_up(&job, CourierVerdict::bad_message, 0, 0);
  return write_exact(stream, &job.verdict, sizeof job.verdict) ? 0 : 1;
}

}  // namespace hutch::guest
