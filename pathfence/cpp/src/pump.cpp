// SPDX-License-Identifier: Apache-2.0
// Who gets a worker, and what is shed. algorithm.md: "Queue", "Pump", "Re-entry".
#include "class.h"

namespace temper::pathfence {
namespace {

constexpr Time kDepthLife = 60'000 * kMillisecond;
constexpr std::int64_t kLeastQueue = 32, kQueueScale = 4;

}  // namespace

void Core::enqueue(Class& c, Request* r) {
    c.touch(now_);
    if (c.queue.empty()) c.stands = now_;
    if (config_.off || c.queue.size() < queue_max(c)) {
        c.queue.push_back(r);
        return;
    }
    Request* victim = r;
    if (!config_.without.newest) {
        victim = c.queue.front();
        c.queue.erase(victim);
        c.queue.push_back(r);
    }
    shed(victim, "full");
}

// Lets a request wait that is in this service for a second time or more.
void Core::enqueue_nested(Request* r) {
    if (!config_.off && static_cast<std::int64_t>(nested_.size()) >= config_.queue_max)
        shed(r, "full");
    else
        nested_.push_back(r);
}

std::int64_t Core::queue_max(const Class& c) const {
    if (c.hold == 0) return config_.queue_max;
    return std::min(config_.queue_max, std::max(kLeastQueue, kQueueScale * (c.unknown ? config_.workers : c.limit) * c.target / c.hold));
}

void Core::unqueue(Request* r) {
    r->of->touch(now_);
    if (r->depth > 0)
        nested_.erase(std::find(nested_.begin(), nested_.end(), r));
    else
        r->of->queue.erase(r);
}

// Ends a request that is in no queue any more.
void Core::shed(Request* r, const char* reason) {
    ++r->of->shed;
    decisions_.push_back({Decision::Kind::shed, r->id, r->of->label, false, reason, 0});
    --waiting_;
    remove_request(r->id);
}

// A class of low rate hears of a change late, its group sooner.
Time Core::margin(const Class& c) const { return std::max(c.hold, c.group ? c.group->hold : 0) * config_.gamma_permille / 1000; }

// Why a waiting request should not be served, or nothing.
const char* Core::hopeless(const Request& r) const {
    const Time left = r.deadline - now_;
    if (left <= 0) return "expired";
    if (config_.without.shed || r.of->in_flight == 0 || now_ - r.arrived < config_.grace) return nullptr;
    // A queue that drains within the target is no sign of anything.
    if (now_ - r.of->stands < r.of->target) return nullptr;
    return left < std::min(margin(*r.of), (r.deadline - r.arrived) / 2) ? "late" : nullptr;
}

void Core::sweep(Class& c) {
    if (c.queue.empty()) return;
    c.touch(now_);
    for (Request *r = c.queue.front(), *next; r; r = next) {
        next = r->behind;
        if (const char* reason = hopeless(*r)) {
            c.queue.erase(r);
            shed(r, reason);
        }
    }
}

void Core::trim(Class& c) {
    while (!c.queue.empty()) {
        const char* reason = hopeless(*c.queue.front());
        if (!reason) return;
        c.touch(now_);
        Request* r = c.queue.front();
        c.queue.erase(r);
        shed(r, reason);
    }
}

void Core::pump() {
    if (config_.off) {
        pump_plain();
        return;
    }
    if (waiting_ == 0) return;
    pump_nested();
    while (waiting_ > 0) {
        for (auto& c : classes_) trim(*c);
        bool lent = false;
        Class* c = next(lent);
        if (!c) return;
        grant(pop(*c), lent, "");
    }
}

// The class that gets the next worker: those within their reserve come first, then those that may borrow; among equals
// the one with the least in flight for its weight, then the one whose last grant is longest ago. A bucket that has its limit
// comes after all others: what is not known is bounded while somebody else wants the workers.
Core::Class* Core::next(bool& best_lent) {
    const std::int64_t free = config_.workers - in_flight_ - deepest();
    if (free <= 0) return nullptr;
    Class* best = nullptr;
    int best_rank = 0;
    for (auto& owned : classes_) {
        Class& c = *owned;
        if (c.queue.empty() || halted(c) || (c.full() && !c.unknown)) continue;
        const bool lent = !within_reserve(c);
        if (lent && !may_borrow(c, free)) continue;
        const int rank = c.full() ? 2 : lent ? 1 : 0;
        if (!best || rank < best_rank || (rank == best_rank && c.before(*best))) {
            best = &c;
            best_lent = lent;
            best_rank = rank;
        }
    }
    return best;
}

Core::Request* Core::pop(Class& c) {
    c.touch(now_);
    Request* r = c.queue.back();
    if (config_.without.newest || margin(c) < c.target / 2 || now_ - c.queue.front()->arrived < config_.grace || hopeless(*r)) r = c.queue.front();
    c.queue.erase(r);
    return r;
}

void Core::grant(Request* r, bool lent, const char* reason) {
    Class& c = *r->of;
    c.touch(now_);
    if (c.in_flight == 0) {
        c.last_turn = now_;
        c.turn_heard = heard_;
    }
    c.last_push = now_;
    hold(c, 1);
    ++c.granted;
    r->granted = now_;
    r->waits = false;
    --waiting_;
    grant_decision(*r, lent, reason);
}

std::int64_t Core::deepest() const {
    for (std::int64_t d = kMaxDepth; d > 0; --d)
        if (now_ - levels_[static_cast<std::size_t>(d)] < kDepthLife) return std::min(d, config_.workers - 1);
    return 0;
}

// Requests that are in this service for a second time or more: their callers hold workers here.
void Core::pump_nested() {
    std::vector<Request*> kept;
    for (Request* r : nested_) {
        if (r->deadline <= now_)
            shed(r, "expired");
        else
            kept.push_back(r);
    }
    nested_.swap(kept);
    while (!nested_.empty()) {
        const auto r = std::max_element(nested_.begin(), nested_.end(), [](const Request* a, const Request* b) { return a->depth < b->depth; });
        if (config_.workers - in_flight_ - std::max<std::int64_t>(0, deepest() - (*r)->depth) <= 0) return;
        Request* chosen = *r;
        nested_.erase(r);
        grant(chosen, false, "");
    }
}

// The plain pool: one queue, in order of arrival, nothing shed.
void Core::pump_plain() {
    while (in_flight_ < config_.workers) {
        Request* first = nullptr;
        const auto consider = [&](Request* r) {
            if (!first || r->order < first->order) first = r;
        };
        for (const auto& c : classes_)
            if (!c->queue.empty()) consider(c->queue.front());
        for (Request* r : nested_) consider(r);
        if (!first) return;
        unqueue(first);
        grant(first, false, "");
    }
}

}  // namespace temper::pathfence
