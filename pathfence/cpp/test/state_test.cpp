// SPDX-License-Identifier: Apache-2.0
// What a fence says of itself. STATE_FOLDER has what both sides have to say of one state.
#include "temper/pathfence/state.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "json.h"

namespace {

using namespace temper::pathfence;

std::string contents(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

State example() {
    return {false, 16, 12, 3, "classes[1].limit: 0 is below 1",
            {{"orders", 10, 8, 10, 3, 2, 5210, 17, 2, 1, 9, 1'250'000, "knee", {"GET:/orders/:id", "POST:/orders"}}, {"~un", 1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, "", {}}}};
}

TEST_CASE("says what is agreed") {
    CHECK(to_json(example()) == contents(STATE_FOLDER "/state.json"));
    CHECK(to_metrics(example()) == contents(STATE_FOLDER "/state.prom"));
}

TEST_CASE("nothing is said of no class") {
    CHECK(to_json({}) == "{\"off\":false,\"workers\":0,\"inFlight\":0,\"waiting\":0,\"watchError\":null,\"classes\":[]}\n");
}

TEST_CASE("text is escaped") {
    State s;
    s.watch_error = "a \"b\"\\c\n\x01";
    CHECK(json::parse(to_json(s))["watchError"].text == s.watch_error);
}

struct Folder {
    std::string path = "/tmp/pathfence-state-XXXXXX";
    Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
    ~Folder() { rmdir(path.c_str()); }
    std::string file() const { return path + "/socket"; }
};

// What the socket says; nothing where nobody answers.
std::string asked(const std::string& path) {
    sockaddr_un a = {};
    a.sun_family = AF_UNIX;
    std::strcpy(a.sun_path, path.c_str());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(fd >= 0);
    std::string text;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof(a)) == 0) {
        char part[512];
        for (ssize_t n; (n = read(fd, part, sizeof(part))) > 0;) text.append(part, static_cast<std::size_t>(n));
    }
    close(fd);
    return text;
}

Config two_workers() {
    Config c;
    c.workers = 2;
    c.classes.push_back({"a", {"a"}, 0, 0, 0, 0});
    return c;
}

TEST_CASE("a socket says how it is now") {
    const Folder folder;
    Fence fence(two_workers());
    {
        const StateSocket socket(fence, folder.file());
        CHECK(json::parse(asked(folder.file()))["inFlight"].integer == 0);
        const Permit p = fence.acquire({"a", 0, 0});
        CHECK(json::parse(asked(folder.file()))["inFlight"].integer == 1);
        fence.off(true);
        CHECK(json::parse(asked(folder.file()))["off"].boolean);
        struct stat s = {};
        CHECK(stat(folder.file().c_str(), &s) == 0);
        CHECK((s.st_mode & 0777) == 0660);
    }
    CHECK(asked(folder.file()).empty());
    CHECK(access(folder.file().c_str(), F_OK) != 0);
}

// Returns the error's number; 0: there was none.
int error_of(const Fence& fence, const std::string& path) {
    try {
        const StateSocket socket(fence, path);
        return 0;
    } catch (const std::system_error& e) {
        return e.code().value();
    }
}

TEST_CASE("a socket in use is left alone") {
    const Folder folder;
    const Fence fence(two_workers());
    const StateSocket socket(fence, folder.file());
    CHECK(error_of(fence, folder.file()) == EADDRINUSE);
    CHECK(!asked(folder.file()).empty());
}

TEST_CASE("a socket that was left behind is replaced") {
    const Folder folder;
    const Fence fence(two_workers());
    sockaddr_un a = {};
    a.sun_family = AF_UNIX;
    std::strcpy(a.sun_path, folder.file().c_str());
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(dead, reinterpret_cast<const sockaddr*>(&a), sizeof(a)) == 0);
    close(dead);
    const StateSocket socket(fence, folder.file());
    CHECK(!asked(folder.file()).empty());
}

TEST_CASE("other files are left alone") {
    const Folder folder;
    const Fence fence(two_workers());
    std::ofstream(folder.file()) << "somebody's";
    CHECK(error_of(fence, folder.file()) == EADDRINUSE);
    CHECK(contents(folder.file()) == "somebody's");
    unlink(folder.file().c_str());
    CHECK(error_of(fence, folder.path + "/none/socket") == ENOENT);
    CHECK(error_of(fence, folder.path + std::string(200, 'x')) == ENAMETOOLONG);
}

TEST_CASE("silent clients hold up nobody") {
    const Folder folder;
    Config c = two_workers();
    for (int i = 0; i < 30; ++i) c.classes.push_back({"class-with-a-rather-long-name-" + std::to_string(i), {"k" + std::to_string(i)}, 0, 0, 0, 0});
    const Fence fence(c);
    const StateSocket socket(fence, folder.file());
    sockaddr_un a = {};
    a.sun_family = AF_UNIX;
    std::strcpy(a.sun_path, folder.file().c_str());
    std::vector<int> silent;
    for (int i = 0; i < 3; ++i) {
        silent.push_back(::socket(AF_UNIX, SOCK_STREAM, 0));
        CHECK(connect(silent.back(), reinterpret_cast<const sockaddr*>(&a), sizeof(a)) == 0);
    }
    CHECK(json::parse(asked(folder.file()))["classes"].list.size() == 31);
    for (const int fd : silent) close(fd);
}

}  // namespace
