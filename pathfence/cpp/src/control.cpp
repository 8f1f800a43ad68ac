// SPDX-License-Identifier: Apache-2.0
// Windows, and the limit that is learned from them. algorithm.md: "Windows", "Limit".
#include <utility>

#include "class.h"
#include "fit.h"

namespace temper::pathfence {
namespace {

constexpr std::size_t kRing = 40, kEnough = 15;
constexpr std::int64_t kSampleDone = 16, kSampleWindows = 10, kFitEvery = 8, kLeast = 2;

}  // namespace

void Core::Class::touch(Time now) {
    const Time d = now - window.touched;
    window.touched = now;
    window.area += in_flight * d;
    if (queue.empty()) return;
    window.queued += d;
    if (in_flight >= cap()) window.limited += d;
}

void Core::close_window(Time length) {
    const bool valid = !stood_ && !stood_before_;
    stood_before_ = std::exchange(stood_, false);
    for (auto& owned : classes_) {
        Class& c = *owned;
        c.touch(now_);
        const Window w = c.window;
        c.window = {};
        c.window.touched = now_;
        if (!valid) {
            c.usual.drop();
            c.others.value = c.others.before;
            c.sample = {};
            continue;
        }
        keep_peaks(c, w, length);
        if (!config_.off) learn(c, w, length);
    }
    share_out();
    if (valid && !config_.off) panic_rule();
}

void Core::keep_peaks(Class& c, const Window& w, Time length) {
    c.others.before = c.others.value;
    if (w.queued * 10 < length && w.done * 4 + 8 >= w.arrivals * 3) {
        c.usual.keep();
        c.alarmed = false;
    } else {
        c.usual.drop();
    }
    c.turn_now = w.done * 1000;
    c.turn += (c.turn_now - c.turn) / 4;
    c.level += (w.area * 1000 / length - c.level) / 4;
}

void Core::set_limit(Class& c, std::int64_t limit, const char* reason) {
    limit = std::max(std::min(kLeast, config_.workers), std::min(limit, config_.workers));
    if (limit == c.limit) return;
    c.touch(now_);
    c.limit = limit;
    c.reason = reason;
    decisions_.push_back({Decision::Kind::limit, 0, &c.name, false, reason, limit});
}

void Core::learn(Class& c, const Window& w, Time length) {
    if (c.unknown || config_.without.learn) return;
    Sample& s = c.sample;
    s.area += w.area;
    s.limited += w.limited;
    s.done += w.done;
    s.good += w.good;
    s.length += length;
    ++s.windows;
    drift(c, w, length);
    if (s.done < kSampleDone && s.windows < kSampleWindows) return;
    const Sample full = s;
    s = {};
    if (now_ - full.length >= c.cool_till) conclude(c, full);
}

// Lets a limit that nobody needs grow.
void Core::drift(Class& c, const Window& w, Time length) {
    if (w.limited * 10 >= length || c.limit == config_.workers) {
        c.quiet_for = 0;
    } else if (++c.quiet_for == 5) {
        c.quiet_for = 0;
        set_limit(c, c.limit + 1, "unused");
    }
}

void Core::conclude(Class& c, const Sample& s) {
    c.touch(now_);
    const bool dipped = c.dip;
    c.dip = false;
    if (s.done < kSampleDone) return;
    const Point p{s.area * 1000 / s.length, s.good * 1000 * config_.window / s.length, s.done * 1000 * config_.window / s.length, s.limited * 10 > s.length * 3};
    ++c.samples;
    regime(c, p);
    if (p.n >= 500) {
        if (c.ring.size() == kRing) c.ring.pop_front();
        c.ring.push_back(p);
    }
    if (undo(c, p) || cut(c, s) || !p.full || dipped || fit(c)) return;
    if (s.good * 10 >= s.done * 9 && room(c, p)) return;
    excite(c);
}

// Forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells.
void Core::regime(Class& c, const Point& p) {
    if (c.ring.size() < 4) {
        c.odd = 0;
        return;
    }
    std::int64_t n = 0, done = 0;
    for (const Point& q : c.ring) {
        n += q.n;
        done += q.done;
    }
    // Beyond the knee requests take longer in proportion to n, which is no change.
    const std::int64_t n0 = n / static_cast<std::int64_t>(c.ring.size());
    const std::int64_t before = n * 1000 / done, now = p.n * 1000 / std::max<std::int64_t>(1, p.done);
    const std::int64_t scaled = before * p.n / n0;
    c.odd = now >= 2 * std::max(before, scaled) || 2 * now <= std::min(before, scaled) ? c.odd + 1 : 0;
    if (c.odd < 3) return;
    c.odd = 0;
    c.ring.clear();
}

// Judges a cut by the first sample after it.
bool Core::undo(Class& c, const Point& p) {
    if (c.cut_from == 0) return false;
    const std::int64_t from = c.cut_from;
    c.cut_from = 0;
    if (p.good * 10 >= c.cut_good * 9) {
        c.cut_pause = 0;
        return false;
    }
    c.cut_pause = std::min(std::max(1000 * kMillisecond, 2 * c.cut_pause), 16'000 * kMillisecond);
    c.no_cut = now_ + c.cut_pause;
    set_limit(c, (c.limit + from + 1) / 2, "undo");
    return true;
}

// Shrinks the limit to what the downstream serves in half of the target, when what comes back is late.
bool Core::cut(Class& c, const Sample& s) {
    if (s.good * 4 >= s.done * 3 || now_ < c.no_cut) {
        c.late = c.late_done = c.late_time = 0;
        return false;
    }
    ++c.late;
    c.late_done += s.done;
    c.late_time += s.length;
    if (c.late == 1 && s.good > 0) return false;
    std::int64_t to = std::max(kLeast, (c.late_done * (c.target / 2) + c.late_time - 1) / c.late_time);
    if (to >= c.limit && c.late >= 4) to = std::max(kLeast, c.limit * 7 / 8);
    if (to >= c.limit) return false;
    c.late = c.late_done = c.late_time = 0;
    c.cut_from = c.limit;
    c.cut_good = s.good * 1000 * config_.window / s.length;
    set_limit(c, to, "late");
    c.cool_till = now_ + s.area / s.done;
    return true;
}

namespace {

template <class Ring>
Scatter full_points(const Ring& ring) {
    Scatter out;
    for (const auto& p : ring)
        if (p.full) out.push_back({p.n, p.good});
    return out;
}

}  // namespace

// Moves the limit towards the smallest concurrency on the plateau.
bool Core::fit(Class& c) {
    if (c.samples % kFitEvery != 0) return false;
    const Scatter full = full_points(c.ring);
    if (full.size() < kEnough || !spread(full)) return false;
    if (falling(full)) {
        set_limit(c, c.limit * 4 / 5, "thrash");
        return true;
    }
    const Knee k = knee(full);
    c.knee = k.at;
    const std::int64_t to = k.at + std::max<std::int64_t>(1, k.at / 4);
    if (k.rising || to >= c.limit) return false;
    set_limit(c, std::max(to, c.limit - std::max<std::int64_t>(1, c.limit / 4)), "knee");
    return true;
}

// Raises a limit that binds while requests hold their workers no longer than they do at lower concurrency.
bool Core::room(Class& c, const Point& p) {
    std::int64_t n = 0, done = 0;
    for (const Point& q : c.ring) {
        if (q.n * 4 > p.n * 3) continue;
        n += q.n;
        done += q.done;
    }
    if (done == 0 || p.n * done * 5 > n * p.done * 6) return false;
    set_limit(c, c.limit + std::max<std::int64_t>(1, c.limit / 2), "room");
    return true;
}

// Makes a difference to learn from.
void Core::excite(Class& c) {
    if (config_.without.excite) return;
    const Scatter full = full_points(c.ring);
    if (full.size() >= 8 && c.samples - c.last_dip >= 16 && !spread(full)) {
        c.touch(now_);
        c.dip = true;
        c.last_dip = c.samples;
    } else if (c.samples % 4 == 0) {
        set_limit(c, c.limit + 1, "probe");
    }
}

}  // namespace temper::pathfence
