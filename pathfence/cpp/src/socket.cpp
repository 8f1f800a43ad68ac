// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "temper/pathfence/state.h"

namespace temper::pathfence {
namespace {

constexpr mode_t kMode = 0660;
constexpr int kPauseMs = 100;  // where the process has no descriptor left

[[noreturn]] void fail(int error, const std::string& what) { throw std::system_error(error, std::generic_category(), what); }

// A file descriptor that is closed with its owner.
class Descriptor {
public:
    Descriptor(int fd, const std::string& what) : fd_(fd) {
        if (fd_ < 0) fail(errno, what);
    }
    ~Descriptor() { close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    operator int() const { return fd_; }

private:
    const int fd_;
};

sockaddr_un address(const std::string& path) {
    sockaddr_un a = {};
    a.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(a.sun_path)) fail(ENAMETOOLONG, path);
    std::memcpy(a.sun_path, path.data(), path.size());
    return a;
}

const sockaddr* generic(const sockaddr_un& a) { return reinterpret_cast<const sockaddr*>(&a); }

int stream() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// Removes a socket that nobody answers any more. Another kind of file is left alone, and bind() fails.
void remove_left_behind(const std::string& path, const sockaddr_un& a) {
    struct stat s = {};
    if (stat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return;
    const Descriptor probe(stream(), "socket");
    if (connect(probe, generic(a), sizeof(a)) == 0) fail(EADDRINUSE, path);
    if (errno == ECONNREFUSED) unlink(path.c_str());
}

}  // namespace

struct StateSocket::Server {
    Server(const Fence& f, const std::string& p) : fence(f), path(p), listening(stream(), "socket"), stop(eventfd(0, EFD_CLOEXEC), "eventfd") {
        const sockaddr_un a = address(path);
        remove_left_behind(path, a);
        // At bind() already: nobody connects before who must not. The umask may have taken some of it away.
        if (fchmod(listening, kMode) != 0 || bind(listening, generic(a), sizeof(a)) != 0) fail(errno, path);
        if (chmod(path.c_str(), kMode) != 0 || listen(listening, SOMAXCONN) != 0) {
            const int error = errno;
            unlink(path.c_str());
            fail(error, path);
        }
        thread = std::thread([this] { run(); });
    }

    ~Server() {
        const std::uint64_t one = 1;
        if (write(stop, &one, sizeof(one)) < 0) std::terminate();  // an eventfd takes it
        thread.join();
        unlink(path.c_str());
    }

    void run() const {
        pollfd both[] = {{listening, POLLIN, 0}, {stop, POLLIN, 0}};
        for (;;) {
            if (poll(both, 2, -1) < 0 && errno != EINTR) return;
            if (both[1].revents != 0) return;
            if (both[0].revents != 0 && !answer()) poll(&both[1], 1, kPauseMs);
        }
    }

    // False where nobody could be let in: whoever came still waits.
    bool answer() const {
        const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return false;
        const timeval patience = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        const std::string text = to_json(fence.state());
        for (std::size_t sent = 0; sent < text.size();) {
            const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) break;
            sent += static_cast<std::size_t>(n);
        }
        close(fd);
        return true;
    }

    const Fence& fence;
    const std::string path;
    const Descriptor listening, stop;
    std::thread thread;
};

StateSocket::StateSocket(const Fence& fence, const std::string& path) : server_(std::make_unique<Server>(fence, path)) {}

StateSocket::~StateSocket() = default;

}  // namespace temper::pathfence
