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

void Core::Limited::touch(Time now, bool waited) {
    const Time d = now - window.touched;
    window.touched = now;
    window.area += in_flight * d;
    if (!waited) return;
    window.queued += d;
    if (met()) window.bound += d;
}

void Core::Limited::finished(Time now, const Request& r) {
    ++window.done;
    const bool good = r.outcome != Outcome::fail && now <= r.deadline;
    punctual += ((good ? 1000 : 0) - punctual) / 16;
    timely = timely || punctual >= 750;
    window.good += good;
    if (r.outcome == Outcome::fail) return;
    holds.note(std::min(now - r.granted, kLongestHold));
    hold = holds.value();
}

void Core::Class::touch(Time now) {
    if (group) group->touch(now);
    Limited::touch(now, !queue.empty());
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
        if (!c.unknown) learn(c, w, length);
    }
    close_groups(length, valid);
    share_out();
    if (valid && !config_.off) panic_rule();
}

void Core::keep_peaks(Class& c, const Window& w, Time length) {
    c.others.before = c.others.value;
    if (w.queued * 10 < length && (w.done + w.light) * 4 + 8 >= w.arrivals * 3) {
        c.usual.keep();
        c.alarmed = false;
    } else {
        c.usual.drop();
    }
    c.turn_now = w.done * 1000;
    c.turn += (c.turn_now - c.turn) / 4;
    c.level += (w.area * 1000 / length - c.level) / 4;
}

// Sums that depend on the limit have to be up to now.
void Core::set_limit(Limited& l, std::int64_t limit, const char* reason) {
    limit = std::max(std::min(kLeast, config_.workers), std::min(limit, config_.workers));
    if (limit == l.limit) return;
    l.limit = limit;
    l.reason = reason;
    decisions_.push_back({Decision::Kind::limit, 0, l.label, false, reason, limit});
}

void Core::learn(Limited& l, const Window& w, Time length) {
    if (config_.off || config_.without.learn) return;
    Sample& s = l.sample;
    s.area += w.area;
    s.bound += w.bound;
    s.done += w.done;
    s.good += w.good;
    s.length += length;
    ++s.windows;
    drift(l, w, length);
    if (s.done < kSampleDone && s.windows < kSampleWindows) return;
    const Sample full = s;
    s = {};
    if (now_ - full.length >= l.cool_till) conclude(l, full);
}

// Lets a limit that nobody needs grow.
void Core::drift(Limited& l, const Window& w, Time length) {
    if (w.bound * 10 >= length || l.limit == config_.workers) {
        l.quiet_for = 0;
    } else if (w.area > 0 && w.done == 0) {
        return;  // what has yet to come back says nothing
    } else if (++l.quiet_for == 5) {
        l.quiet_for = 0;
        set_limit(l, l.limit + 1, "unused");
    }
}

void Core::conclude(Limited& l, const Sample& s) {
    const bool dipped = l.dip;
    l.dip = false;
    if (s.done < kSampleDone) return;
    const Point p{s.area * 1000 / s.length, s.good * 1000 * config_.window / s.length, s.done * 1000 * config_.window / s.length, s.bound * 10 > s.length * 3};
    ++l.samples;
    regime(l, p);
    if (p.n >= 500) {
        if (l.ring.size() == kRing) l.ring.pop_front();
        l.ring.push_back(p);
    }
    if (undo(l, p) || cut(l, s) || !p.full || dipped || fit(l)) return;
    if (s.good * 10 >= s.done * 9 && room(l, p)) return;
    excite(l);
}

// Forgets the ring when three samples in a row hold workers twice as long, or half as long, as it tells.
void Core::regime(Limited& l, const Point& p) {
    if (l.ring.size() < 4) {
        l.misfits = 0;
        return;
    }
    std::int64_t n = 0, done = 0;
    for (const Point& q : l.ring) {
        n += q.n;
        done += q.done;
    }
    // Beyond the knee requests take longer in proportion to n, which is no change.
    const std::int64_t n0 = n / static_cast<std::int64_t>(l.ring.size());
    const std::int64_t before = n * 1000 / done, now = p.n * 1000 / std::max<std::int64_t>(1, p.done);
    const std::int64_t scaled = before * p.n / n0;
    l.misfits = now >= 2 * std::max(before, scaled) || 2 * now <= std::min(before, scaled) ? l.misfits + 1 : 0;
    if (l.misfits < 3) return;
    l.misfits = 0;
    l.ring.clear();
}

// Judges a cut by the first sample after it.
bool Core::undo(Limited& l, const Point& p) {
    if (l.cut_from == 0) return false;
    const std::int64_t from = l.cut_from;
    l.cut_from = 0;
    if (p.good * 10 >= l.cut_good * 9) {
        l.cut_pause = 0;
        return false;
    }
    l.cut_pause = std::min(std::max(1000 * kMillisecond, 2 * l.cut_pause), 16'000 * kMillisecond);
    l.no_cut_until = now_ + l.cut_pause;
    set_limit(l, (l.limit + from + 1) / 2, "undo");
    return true;
}

// Shrinks the limit to what the downstream serves in half of the target, when what comes back is late.
bool Core::cut(Limited& l, const Sample& s) {
    if (!l.timely || s.good * 4 >= s.done * 3 || now_ < l.no_cut_until) {
        l.late = l.late_done = l.late_time = 0;
        return false;
    }
    ++l.late;
    l.late_done += s.done;
    l.late_time += s.length;
    if (l.late == 1 && s.good > 0) return false;
    std::int64_t to = std::max(kLeast, (l.late_done * (l.target / 2) + l.late_time - 1) / l.late_time);
    if (to >= l.limit && l.late >= 4) to = std::max(kLeast, l.limit * 7 / 8);
    if (to >= l.limit) return false;
    l.late = l.late_done = l.late_time = 0;
    l.cut_from = l.limit;
    l.cut_good = s.good * 1000 * config_.window / s.length;
    set_limit(l, to, "late");
    l.cool_till = now_ + s.area / s.done;
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
bool Core::fit(Limited& l) {
    if (l.samples % kFitEvery != 0) return false;
    const Scatter full = full_points(l.ring);
    if (full.size() < kEnough || !spread(full)) return false;
    if (falling(full)) {
        set_limit(l, l.limit * 4 / 5, "thrash");
        return true;
    }
    const Knee k = knee(full);
    l.knee = k.at;
    const std::int64_t to = k.at + std::max<std::int64_t>(1, k.at / 4);
    if (k.rising || to >= l.limit) return false;
    set_limit(l, std::max(to, l.limit - std::max<std::int64_t>(1, l.limit / 4)), "knee");
    return true;
}

// Raises a limit that binds while requests hold their workers no longer than they do at lower concurrency.
bool Core::room(Limited& l, const Point& p) {
    std::int64_t n = 0, done = 0;
    for (const Point& q : l.ring) {
        if (q.n * 4 > p.n * 3) continue;
        n += q.n;
        done += q.done;
    }
    if (done == 0 || p.n * done * 5 > n * p.done * 6) return false;
    set_limit(l, l.limit + std::max<std::int64_t>(1, l.limit / 2), "room");
    return true;
}

// Makes a difference to learn from.
void Core::excite(Limited& l) {
    if (config_.without.excite) return;
    const Scatter full = full_points(l.ring);
    if (full.size() >= 8 && l.samples - l.last_dip >= 16 && !spread(full)) {
        l.dip = true;
        l.last_dip = l.samples;
    } else if (l.samples % 4 == 0) {
        set_limit(l, l.limit + 1, "probe");
    }
}

}  // namespace temper::pathfence
