// SPDX-License-Identifier: Apache-2.0
// What the core knows of a request and of a class.
#pragma once

#include <algorithm>
#include <deque>

#include "temper/pathfence/core.h"

namespace temper::pathfence {

constexpr Time kNever = -(Time{1} << 60);
constexpr Time kLongestHold = 600'000 * kMillisecond;
constexpr std::int64_t kDefaultWeight = 100;
constexpr std::size_t kMaxNamed = 64;  // classes, by this and earlier configurations
constexpr std::size_t kMaxLearned = 32, kMaxBuckets = 32, kMaxEdges = EdgeSet::kMost;

// How many requests that are over keep their memory for others.
constexpr std::size_t kMaxSpare = 256;

struct Core::Request {
    std::int64_t id = 0;
    std::int64_t order = 0;
    std::string key;
    Class* of = nullptr;
    Time arrived = 0, deadline = 0, granted = 0;
    Time expires = 0;  // the target, where the deadline is one of a peer that is not trusted; else 0
    std::int64_t depth = 0;
    std::int64_t sharers = 1;  // requests that run on this one's permit, itself included
    bool waits = true;         // else it is in flight
    bool done = false;         // itself has ended, sharers have not
    Request* parent = nullptr;
    Outcome outcome = Outcome::ok;
    Request *before = nullptr, *behind = nullptr;  // in its class's queue

    // A new one, in the memory of one that is over; its key's included.
    void reset(std::int64_t new_id, Class& c) {
        id = new_id;
        of = &c;
        key.clear();
        order = arrived = deadline = granted = expires = depth = 0;
        sharers = 1;
        waits = true;
        done = false;
        parent = before = behind = nullptr;
        outcome = Outcome::ok;
    }
};

// Requests in order, linked through themselves: one may leave from anywhere.
template <class Request>
class Line {
public:
    bool empty() const { return count_ == 0; }
    std::int64_t size() const { return count_; }
    Request* front() const { return front_; }
    Request* back() const { return back_; }

    void push_back(Request* r) {
        r->before = back_;
        r->behind = nullptr;
        (back_ ? back_->behind : front_) = r;
        back_ = r;
        ++count_;
    }
    void erase(Request* r) {
        (r->before ? r->before->behind : front_) = r->behind;
        (r->behind ? r->behind->before : back_) = r->before;
        --count_;
    }

private:
    Request *front_ = nullptr, *back_ = nullptr;
    std::int64_t count_ = 0;
};

struct Core::Candidate {
    std::string key;
    std::set<std::string> edges;
    std::int64_t quiet = 0;
    Time touched = 0;
    Class* of = nullptr;  // once it is learned
};

// A sample as the limit's controller sees it; counts in thousandths.
struct Core::Point {
    std::int64_t n;     // workers held on average
    std::int64_t good;  // completions in time a window
    std::int64_t done;  // completions a window
    bool full;          // the limit bound, or a dip did: what is seen is the downstream's, not the demand's
};

struct Core::Window {
    Time touched = 0;         // the sums are up to then
    std::int64_t area = 0;    // in flight, times time
    std::int64_t queued = 0;  // time in which something waited
    std::int64_t bound = 0;   // of that, time in which the limit was met
    std::int64_t arrivals = 0, done = 0, good = 0;
    std::int64_t light = 0;  // that ended without being counted in done: hardly any work
};

struct Core::Sample {
    std::int64_t area = 0, bound = 0, done = 0, good = 0;
    Time length = 0;
    std::int64_t windows = 0;
};

// The maximum over the last windows that were kept.
struct Peak {
    static constexpr std::size_t kBlocks = 8;
    static constexpr std::int64_t kWindows = 4;  // a block

    void note(std::int64_t v) { current = std::max(current, v); }
    void drop() { current = 0; }
    void keep() {
        if (kept++ % kWindows == 0) {
            std::copy_backward(blocks.begin(), blocks.end() - 1, blocks.end());
            blocks[0] = 0;
        }
        blocks[0] = std::max(blocks[0], current);
        current = 0;
        value = *std::max_element(blocks.begin(), blocks.end());
    }

    std::int64_t current = 0, kept = 0, value = 0;
    std::array<std::int64_t, kBlocks> blocks{};  // the newest first
};

// A value, in thousandths, that 990 of 1000 stay below.
struct Quantile {
    void note(std::int64_t v) {
        const std::int64_t step = std::max<std::int64_t>(100, value / 32);
        if (v * 1000 > value)
            value += step * 990 / 1000;
        else
            value = std::max<std::int64_t>(0, value - std::max<std::int64_t>(1, step * 10 / 1000));
    }

    std::int64_t value = 0;
    std::int64_t before = 0;  // when the window began
};

// The lower median of the last so many values, which are kept in order of size, too.
class RunningMedian {
public:
    void note(std::int64_t v) {
        if (count_ == kMost) remove(recent_[next_]);
        recent_[next_] = v;
        next_ = (next_ + 1) % kMost;
        const auto end = sorted_.begin() + count_++;
        const auto at = std::upper_bound(sorted_.begin(), end, v);
        std::copy_backward(at, end, end + 1);
        *at = v;
    }
    std::int64_t value() const { return sorted_[static_cast<std::size_t>(count_ - 1) / 2]; }

private:
    static constexpr std::ptrdiff_t kMost = 31;

    void remove(std::int64_t v) {
        const auto end = sorted_.begin() + count_--;
        const auto at = std::lower_bound(sorted_.begin(), end, v);
        std::copy(at + 1, end, at);
    }

    std::array<std::int64_t, kMost> recent_{}, sorted_{};
    std::ptrdiff_t count_ = 0;
    std::size_t next_ = 0;
};

// What has a limit, and that limit's controller: a class, or a group of them.
struct Core::Limited {
    Time target = 0;
    std::int64_t in_flight = 0, limit = 0;
    const char* reason = "";  // of the limit's last change
    const ClassLabel* label = nullptr;

    Window window;  // the one that runs
    Sample sample;  // the windows before it that are not concluded from yet
    RunningMedian holds;
    Time hold = 0;  // their median

    // The controller. algorithm.md: "Limit".
    std::deque<Point> ring;      // the last samples, the oldest first
    std::int64_t samples = 0;    // concluded from, ever
    std::int64_t knee = 0;       // where the last fit put it
    std::int64_t misfits = 0;    // samples in a row whose requests hold workers for far longer, or shorter, than the ring's
    std::int64_t quiet_for = 0;  // windows in a row in which the limit was not needed, since it last drifted
    bool dip = false;            // this sample is taken below the limit
    std::int64_t last_dip = 0;   // the value of samples then
    Time cool_till = 0;          // samples that begin before it say nothing of the limit in force
    std::int64_t punctual = 0;   // the part of the last answers that were in time, in thousandths, smoothed
    bool timely = false;         // three quarters were once: what never was in time is not slow, its target is too short
    std::int64_t late = 0;       // samples in a row in which too much was late,
    std::int64_t late_done = 0;  // their completions,
    Time late_time = 0;          // and their length
    std::int64_t cut_from = 0;   // the limit before a cut that the next sample judges; 0: none
    std::int64_t cut_good = 0;   // goodput before that cut, as Point::good
    Time no_cut_until = 0;       // the next cut, after one was undone
    Time cut_pause = 0;          // how long the wait was: doubled with each in a row

    // The limit in force, and whether it is met.
    std::int64_t cap() const { return dip ? std::max<std::int64_t>(1, (limit * 7 + 9) / 10) : limit; }
    bool met() const { return in_flight >= cap(); }
    // Brings the window's sums up to now; something has waited since they were, or nothing has.
    void touch(Time now, bool waited);
    // Counts a completion that was not cancelled.
    void finished(Time now, const Request& r);
    // Gives the controller another target, which it has yet to meet.
    void aim(Time to) {
        if (to == target) return;
        target = to;
        punctual = 0;
        timely = false;
    }
};

struct Core::Class : Limited {
    std::int64_t index = 0;
    ClassLabel own_label;
    std::int64_t weight = 0;
    bool unknown = false;  // a bucket for keys without a class
    bool learned = false;  // by its edges, not configured
    Time seen = 0;
    bool succeeded = false;  // something ended ok

    Line<Request> queue;
    Time stands = 0;  // since then the queue has not been empty, if it is not
    std::int64_t reserve = 0;
    std::int64_t granted = 0, shed = 0, missed = 0, failed = 0;

    // lending
    Peak usual;
    Quantile others;
    std::int64_t turn = 0, turn_now = 0, level = 0;
    bool alarmed = false;          // stalled, while others were answered, since it last got what it asked for
    std::int64_t stall_turns = 0;  // turns_ when it stalled last
    Time stalled_at = kNever, last_push = kNever, last_turn = 0;
    Time turn_heard = 0;  // how much the core had heard at last_turn
    Time bar_until = 0, bar_for = 0;

    // grouping
    std::vector<std::string> edges;  // that its requests use; own_label has them, too
    std::int64_t misses = 0;         // completions in a row that were no good
    std::int64_t calm = 0;           // windows since something was late, or kept from it by the group's limit
    bool suspect = false;
    Group* group = nullptr;

    std::int64_t demand() const { return in_flight + queue.size(); }
    std::int64_t entitled() const { return std::min(limit, std::max(reserve, usual.value)); }
    // How many workers others leave to it now: as many as it has requests, if it is entitled to them; but no more than do what
    // has come within a 256th of its target, or a few quick requests at once would take half of a pool.
    std::int64_t wants() const {
        std::int64_t d = demand();
        if (d == 0) return 0;
        if (d > 0 && hold > 0 && hold * 256 < target)  // else it bounds nothing, and a division costs
            d = std::min(d, (d * hold * 256 + target - 1) / target);
        return std::min(d, entitled());
    }
    // Whether it has all that it may have, or its group does.
    bool full() const;
    // Whether it comes before another where both are within their reserve, or both are not.
    bool before(const Class& other) const {
        const std::int64_t mine = in_flight * other.weight, others = other.in_flight * weight;
        return mine < others || (mine == others && last_push < other.last_push);
    }
    void add_edge(const std::string& edge) {
        edges.push_back(edge);
        own_label.edges.add(edge);
    }
    // Brings the window's sums up to now, its group's too; call it before anything changes that they depend on.
    void touch(Time now);
};

// Classes that use an edge, all of them suspects: those that are late together have a limit together.
struct Core::Group : Limited {
    std::string edge;
    std::vector<Class*> members;

    void add(Class& c);
    void touch(Time now);
};

}  // namespace temper::pathfence
