// SPDX-License-Identifier: Apache-2.0
// Reserves, and what of them is lent. algorithm.md: "Reserve", "Lending", "Stall", "Panic".
#include "class.h"

namespace temper::pathfence {
namespace {

constexpr Time kActiveFor = 60'000 * kMillisecond;
constexpr Time kBarFirst = 1000 * kMillisecond, kBarLongest = 8000 * kMillisecond, kBarMemory = 16'000 * kMillisecond;
constexpr std::int64_t kAloneTurns = 2;

}  // namespace

void Core::arrived(Class& c) {
    const bool woke = now_ - c.seen >= kActiveFor;
    c.seen = now_;
    ++c.window.arrivals;
    if (woke) share_out();
}

bool Core::active(const Class& c) const { return c.in_flight > 0 || now_ - c.seen < kActiveFor; }

// Divides the workers among the active classes, by weight. All buckets together count as one class. Nobody has all workers
// by right: what is asked for next would find none.
void Core::share_out() {
    std::int64_t sum = 0;
    bool bucket = false;
    for (const auto& c : classes_) {
        if (!active(*c)) continue;
        if (c->unknown)
            bucket = true;
        else
            sum += c->weight;
    }
    if (bucket) sum += kDefaultWeight;
    for (auto& c : classes_) {
        if (c->unknown)
            c->reserve = 1;
        else if (sum > 0)
            c->reserve = std::max<std::int64_t>(1, std::min(config_.workers * c->weight / sum, config_.workers - 1));
    }
}

// Whether the next worker of a class is its own. Buckets have one each, as long as not too many do. What a bucket has
// borrowed is not counted: it would be held against the others when its downstream hangs.
bool Core::within_reserve(const Class& c) const {
    if (c.in_flight >= c.reserve) return false;
    if (!c.unknown) return true;
    const auto busy = std::count_if(classes_.begin(), classes_.begin() + buckets_, [](const auto& o) { return o->in_flight > 0; });
    return busy < buckets_by_right();
}

// An eighth of the workers, but so many that one bucket whose downstream hangs is not all of them.
std::int64_t Core::buckets_by_right() const { return config_.workers < 4 ? 1 : std::max<std::int64_t>(2, unknown_limit()); }

// Remembers how much was wanted at once, after an arrival in class c.
void Core::note_demand(Class& c) {
    c.usual.note(c.demand());
    std::array<std::int64_t, kMaxBuckets + kMaxNamed + kMaxLearned> wants;
    std::int64_t sum = 0;
    for (const auto& o : classes_) {
        const std::int64_t w = o->wants();
        wants[static_cast<std::size_t>(o->index)] = w;
        sum += w;
    }
    for (auto& o : classes_)
        if (o.get() != &c) o->others.note(std::min(sum - wants[static_cast<std::size_t>(o->index)], config_.workers));
}

bool Core::may_borrow(const Class& c, std::int64_t free) const {
    if (config_.without.lend || now_ < c.bar_until || stalled(c)) return false;
    if (c.unknown && c.in_flight == 0) return free > kept_for_classes();
    std::int64_t keep = 0, held = 0, level = 0, turn = 0;
    bool alone = true;
    for (const auto& o : classes_) {
        if (o.get() == &c) continue;
        alone = alone && !active(*o);
        const std::int64_t wants = o->wants();
        keep += wants;
        held += std::min(o->in_flight, wants);
        level += o->level;
        turn += o->turn;
    }
    if (alone) return free > spare(c);
    if (!config_.without.protect) keep = std::max(keep, (c.others.value + 500) / 1000);
    // What c gives back while the others' requests would wait for as long as they take anyhow.
    // Whoever stood still while others were answered gave back nothing that they could have used, and may do so again.
    const std::int64_t back = turn > 0 && !c.alarmed ? c.turn_now * level / (1000 * turn) : 0;
    return free > std::max({std::int64_t{1}, spare(c), keep - held - back});
}

// How many workers a bucket leaves of which nothing is in flight. It may be that of a quick path beside others that hang, so
// it leaves none for other buckets; for classes what they want now, and one while there are any.
std::int64_t Core::kept_for_classes() const {
    std::int64_t one = 0, want = 0;
    for (auto c = classes_.begin() + buckets_; c != classes_.end(); ++c) {
        if (active(**c)) one = 1;
        want += std::max<std::int64_t>(0, (*c)->wants() - (*c)->in_flight);
    }
    return std::max(one, want);
}

// How many of the free workers a class leaves, whoever else is there: none, if its requests take what they should. What is
// slow, or has yet to come back for the first time, may hold what it takes for as long as a client waits.
std::int64_t Core::spare(const Class& c) const {
    if (c.hold > 0 && c.hold <= c.target) return 0;
    return c.unknown ? std::max(buckets_by_right(), config_.workers / 4) : 1;
}

bool Core::stalled(const Class& c) const {
    if (config_.without.panic || c.in_flight == 0) return false;
    const Time one = c.hold > 0 ? c.hold : c.target;  // what one request takes: in a burst, nothing comes back before
    const Time usual = c.turn > 0 ? 8 * c.level * config_.window / c.turn : 8 * one;
    return heard_ - c.turn_heard >= std::max(usual / c.in_flight, one + config_.stall);
}

// Whether a stalled class has to wait; its limit goes down, too, since what has queued would otherwise go to its
// downstream all at once when that answers again.
bool Core::halted(Class& c) {
    if (!stalled(c)) return false;
    if (c.stalled_at != c.last_turn && !c.unknown && !config_.without.learn) {
        c.stalled_at = c.last_turn;
        c.stall_turns = turns_;
        std::int64_t to = 2 * c.usual.value + 4;
        if (c.alarmed) to = std::max(to * 5 / 8, c.limit * 7 / 8);
        c.touch(now_);
        set_limit(c, std::min(c.limit, to), "stall");
        mistrust(c);
        if (c.group) contain(*c.group);
    }
    return now_ - c.last_push < c.target / 4;
}

// Something of the class has come back. If it had stalled, and others were answered meanwhile, it was its own downstream
// that stood still.
void Core::turned(Class& c) {
    if (c.stalled_at == c.last_turn && turns_ - c.stall_turns >= kAloneTurns) c.alarmed = true;
    c.last_turn = now_;
    c.turn_heard = heard_;
}

// Whether a class has waited for what is its own. Where its requests in flight are not answered either, it is not
// workers that it waits for.
bool Core::unmet(const Class& c) const {
    if (c.queue.empty() || c.full() || !within_reserve(c)) return false;
    const Time since = c.queue.front()->arrived;
    return now_ - since >= config_.panic && (c.in_flight == 0 || c.last_turn > since);
}

void Core::panic_rule() {
    if (config_.without.panic) return;
    if (std::none_of(classes_.begin(), classes_.end(), [this](const auto& c) { return unmet(*c); })) return;
    Class* culprit = nullptr;
    for (auto& c : classes_)
        if (c->in_flight > c->reserve && (!culprit || c->in_flight - c->reserve > culprit->in_flight - culprit->reserve)) culprit = c.get();
    if (!culprit || now_ < culprit->bar_until) return;
    const bool again = culprit->bar_for > 0 && now_ - culprit->bar_until < kBarMemory;
    culprit->bar_for = again ? std::min(2 * culprit->bar_for, kBarLongest) : kBarFirst;
    culprit->bar_until = now_ + culprit->bar_for;
    decisions_.push_back({Decision::Kind::stop, 0, culprit->label, false, "panic", 0});
}

}  // namespace temper::pathfence
