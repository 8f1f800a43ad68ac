// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/wire.h"

#include <doctest/doctest.h>

namespace {

using namespace temper::pathfence;

std::string text(const Context& c) { return c.path + " " + std::to_string(c.timeout) + " " + c.visits; }

const Context full{"home.read", 240 * kMillisecond, "front*1;shared*2"};

TEST_CASE("every form carries all") {
    Headers h{{"other", "x"}};
    write_headers(full, h);
    CHECK(h.size() == 4);
    CHECK(text(read_headers(h)) == text(full));
    write_headers({}, h);
    CHECK(h.size() == 1);
    CHECK(text(read_baggage("a=b, " + write_baggage(full) + " ,c=d;p=1")) == text(full));
    std::string name = join_name(full, "getPost");
    CHECK(text(split_name(name)) == text(full));
    CHECK(name == "getPost");
    name = "posts:" + join_name(full, "getPost");
    CHECK(text(split_name(name)) == text(full));
    CHECK(name == "posts:getPost");
    name = "posts:getPost";
    CHECK(text(split_name(name)) == text({}));
    CHECK(name == "posts:getPost");
}

TEST_CASE("what breaks a rule is not there") {
    for (const char* path : {"", "a b", "a!b", "\xc3\xa9"}) {
        CAPTURE(path);
        CHECK(read_headers({{"pf.path", path}}).path.empty());
    }
    CHECK(read_headers({{"pf.path", std::string(65, 'a')}}).path.empty());
    CHECK(read_headers({{"pf.path", std::string(64, 'a')}}).path.size() == 64);
    for (const char* deadline : {"", "0", "-5", "+5", "5x", "1e3", "1234567890"}) {
        CAPTURE(deadline);
        CHECK(read_headers({{"pf.deadline", deadline}}).timeout == 0);
    }
    CHECK(read_headers({{"pf.deadline", "999999999"}}).timeout == 600'000 * kMillisecond);
    for (const char* visits : {"a", "a*0", "a*-1", "a b*1", "a*1;", "a*1;b*1;c*1;d*1;e*1;f*1;g*1;h*1;i*1"}) {
        CAPTURE(visits);
        CHECK(read_headers({{"pf.visits", visits}}).visits.empty());
    }
    std::string many = "pf.path=a";
    for (int i = 0; i < 64; ++i) many += ",m=1";
    CHECK(read_baggage(many).path.empty());
    CHECK(read_baggage("pf.path=a," + std::string(8192, 'x')).path.empty());
    CHECK(read_baggage("pf.path=a;ttl=1,pf.path=b").path == "a");
    std::string name = "pf!a!1!getPost";
    CHECK(text(split_name(name)) == text({}));
    CHECK(name == "pf!a!1!getPost");
}

TEST_CASE("chains are counted and time runs") {
    CHECK(depth_of(full, "shared") == 2);
    CHECK(depth_of(full, "elsewhere") == 0);
    Context c = onward(full, "shared", 40 * kMillisecond);
    CHECK(c.timeout == 200 * kMillisecond);
    CHECK(depth_of(c, "shared") == 3);
    c = onward(c, "next", 500 * kMillisecond);
    CHECK(c.timeout == 1);
    CHECK(depth_of(c, "next") == 1);
    for (const char* s : {"a", "b", "c", "d", "e", "f"}) c = onward(c, s, 0);
    CHECK(depth_of(c, "front") == 0);
    CHECK(depth_of(c, "shared") == 3);
    CHECK(depth_of(c, "f") == 1);
    CHECK(text(untrusted(full)) == text({"", 240 * kMillisecond, ""}));
}

}  // namespace
