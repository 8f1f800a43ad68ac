// SPDX-License-Identifier: Apache-2.0
// A service that is called again below itself, over the wire: S calls X, which calls S.
#include "thrift_service.h"

namespace {

constexpr Time kPatience = 60'000 * kMillisecond;
constexpr std::int64_t kRounds = 2;  // how often a chain comes back to S

Config one_class(std::int64_t workers) {
    Config c;
    c.workers = workers;
    c.classes.push_back({"a", {"a"}, 0, kPatience, 0, 0});
    return c;
}

// Every chain holds a worker of S while it waits for another: with no more of them than chains that have begun, and none
// kept for those that come back, all would wait for each other until their deadlines.
TEST_CASE("chains through a full pool end") {
    constexpr int kChains = 12;
    Gate gate;
    int s_port = 0;
    FencedServer x(one_class(64), {"x", true, false, {}}, [&](const std::string&) { pass_on(s_port, "s"); }, 64);
    FencedServer s(one_class(4), {"s", true, false, {}}, [&](const std::string& method) {
        const std::int64_t depth = depth_of(onward_here(), "s") - 1;  // what is sent on counts this visit
        if (method == "s" && depth == 0) gate.pass();
        if (depth < kRounds) pass_on(x.port(), "x");
    });
    s_port = s.port();
    const Context client{"a", kPatience, ""};
    CHECK(call(s.port(), "first", client).empty());  // from now on workers are kept for chains of this depth
    std::vector<std::future<std::string>> chains;
    for (int i = 0; i < kChains; ++i) chains.push_back(std::async(std::launch::async, [&] { return call(s.port(), "s", client); }));
    while (s.fence->in_flight() + s.fence->waiting() < kChains) std::this_thread::yield();
    gate.open();
    for (auto& c : chains) CHECK(c.get().empty());
    while (s.fence->in_flight() > 0) std::this_thread::yield();
    const auto state = s.fence->states().front();
    CHECK(state.granted == (kChains + 1) * (kRounds + 1));
    CHECK(state.shed == 0);
}

}  // namespace
