// SPDX-License-Identifier: Apache-2.0
// The decisions of ../../../../spec/algorithm.md: events in, decisions out. It has no clock, no thread and no lock;
// fence.h has the engine that a service uses.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "temper/pathfence/class_label.h"
#include "temper/pathfence/config.h"

namespace temper::pathfence {

// light: refused, not found, redirected; or it goes on without a worker. That is hardly any work.
enum class Outcome { ok, fail, cancel, light };

struct Decision {
    enum class Kind { grant, shed, limit, stop } kind;
    std::int64_t id = 0;
    const ClassLabel* of = nullptr;  // lives as long as the core
    bool lent = false;
    const char* reason = "";
    std::int64_t limit = 0;
};

// What is known of a request when it arrives.
struct Arrival {
    std::int64_t id = 0;
    std::string key;
    Time deadline = 0;       // absolute; 0: the class's target
    bool shortens = false;   // the deadline may only shorten the target, as that of a peer that is not trusted
    std::int64_t depth = 0;  // how often its chain of calls has been in this service before
    std::int64_t parent = 0; // the request in flight that it is a part of; 0: none
};

// What metrics show of a class.
struct ClassState {
    std::string name;
    std::int64_t limit, reserve, in_flight, queued, lent, granted, shed, missed, failed, knee;
    Time hold;
    std::string reason;
    std::vector<std::string> keys;  // that are known to be of it: configured, learned, or being learned
};

class Core {
public:
    Core(const Config& config, Time now);  // throws ConfigError
    ~Core();
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    // What an event decided; until the next event.
    using Decisions = std::vector<Decision>;
    const Decisions& arrive(Time now, const Arrival& arrival);
    // Takes a worker again, at once, for a request that went on without one.
    const Decisions& resume(Time now, std::int64_t id, const std::string& key);
    const Decisions& done(Time now, std::int64_t id, Outcome outcome);
    const Decisions& edge(Time now, std::int64_t id, const std::string& edge);
    const Decisions& tick(Time now);
    const Decisions& reload(Time now, const Config& config, bool& refused);
    const Decisions& off(Time now, bool off);

    std::vector<ClassState> states() const;
    std::int64_t in_flight() const { return in_flight_; }
    std::int64_t waiting() const { return waiting_; }
    const Config& config() const { return config_; }

private:
    struct Limited;
    struct Class;
    struct Group;
    struct Request;
    struct Candidate;
    struct Point;
    struct Sample;
    struct Window;
    using Requests = std::unordered_map<std::int64_t, std::unique_ptr<Request>>;

    static constexpr int kMaxDepth = 8;
    static constexpr std::size_t kMaxKeys = 256;

    // core.cpp: events
    Class& add_class(const ClassConfig& config);
    void configure();
    Class* named(const std::string& name) const;
    std::int64_t unknown_limit() const;
    std::int64_t buckets_by_right() const;
    Request* running(std::int64_t id) const;
    Request& add_request(std::int64_t id, Class& c);
    void remove_request(std::int64_t id);
    void inherit(const Arrival& arrival, Request* parent);
    void release(Request& r);
    bool hurried(const Request& r) const;
    void finished(Class& c, const Request& r);
    void hold(Class& c, std::int64_t permits);
    template <class F>
    void each_limited(F f);
    void begin(Time now);
    void empty_samples();
    void grant_decision(const Request& r, bool lent, const char* reason);

    // keys.cpp: from a key to a class
    Class& class_of(const std::string& key) const;
    Candidate* candidate_for(const std::string& key);
    std::unique_ptr<Candidate>& slot(const std::string& key);
    void learn_key(const std::string& key);
    std::size_t learned_classes() const;
    std::set<std::string> footprint(const Candidate& k) const;
    bool adopt(Candidate& k);
    std::map<const Class*, std::vector<std::string>> shown_keys() const;

    // group.cpp: classes that are late together
    void uses(Class& c, const std::string& edge);
    void judge(Class& c, bool good);
    void mistrust(Class& c);
    void contain(Group& g);
    void regroup();
    std::unique_ptr<Group> group_of(const std::string& edge, std::vector<std::unique_ptr<Group>>& before);
    void close_groups(Time length, bool valid);
    void acquit();

    // pump.cpp: who gets a worker, and what is shed
    void enqueue(Class& c, Request* r);
    void enqueue_nested(Request* r);
    void unqueue(Request* r);
    std::int64_t queue_max(const Class& c) const;
    void shed(Request* r, const char* reason);
    Time margin(const Class& c) const;
    const char* hopeless(const Request& r) const;
    void sweep(Class& c);
    void trim(Class& c);
    void pump();
    void pump_nested();
    void pump_plain();
    Class* next(bool& lent);
    Request* pop(Class& c);
    void grant(Request* r, bool lent, const char* reason);
    std::int64_t deepest() const;

    // lend.cpp: reserves, and what of them is lent
    void arrived(Class& c);
    bool active(const Class& c) const;
    void share_out();
    bool within_reserve(const Class& c) const;
    void note_demand(Class& c);
    bool may_borrow(const Class& c, std::int64_t free) const;
    std::int64_t kept_for_classes() const;
    std::int64_t spare(const Class& c) const;
    bool stalled(const Class& c) const;
    bool halted(Class& c);
    void turned(Class& c);
    bool unmet(const Class& c) const;
    void panic_rule();

    // control.cpp: windows and limits
    void close_window(Time length);
    void keep_peaks(Class& c, const Window& w, Time length);
    void set_limit(Limited& l, std::int64_t limit, const char* reason);
    void learn(Limited& l, const Window& w, Time length);
    void drift(Limited& l, const Window& w, Time length);
    void conclude(Limited& l, const Sample& s);
    void regime(Limited& l, const Point& p);
    bool undo(Limited& l, const Point& p);
    bool cut(Limited& l, const Sample& s);
    bool fit(Limited& l);
    bool room(Limited& l, const Point& p);
    void excite(Limited& l);

    Config config_;
    bool said_off_;  // by the configuration last, whoever switched since
    Time now_;
    Time heard_ = 0;  // the time that has passed, but of each silence only the beginning
    Time window_start_;
    bool stood_ = false, stood_before_ = false;  // in this window, the one before, nothing was heard for half of one
    std::int64_t order_ = 0;
    std::int64_t in_flight_ = 0;
    std::int64_t turns_ = 0;  // requests that have ended, those that were cancelled left out
    std::int64_t buckets_;
    std::vector<std::unique_ptr<Class>> classes_;  // buckets first
    std::vector<std::unique_ptr<Group>> groups_;   // of classes that are late together
    std::map<std::string, ClassLabel> group_labels_;  // by edge: of all groups there ever were
    Requests requests_;
    std::vector<Requests::node_type> spare_;  // of requests that are over, for the next: with their memory
    std::int64_t waiting_ = 0;                // of requests_
    std::vector<Request*> nested_;
    std::array<Time, kMaxDepth + 1> levels_;

    std::unordered_map<std::string, Class*> configured_;
    std::unordered_map<std::string, std::unique_ptr<Candidate>> learned_;
    std::array<std::unique_ptr<Candidate>, kMaxKeys> candidates_;
    std::map<std::set<std::string>, Class*> footprints_;
    Decisions decisions_;
};

}  // namespace temper::pathfence
