/* The protocol of tools/vgpu/cp/scheduler/claims.hpp: workers claim and end the workgroups of the
 * dispatches that one slot holds, one after the other. README.md lists the checks.
 *
 * A step is one access to shared memory. Each dispatch has other parts than the one before it, so that
 * a worker may see words of two of them. LOCK is the dispatch whose claims the scheduler takes over
 * while workers claim (a CU mask); 0: none.
 *
 * -DBROKEN_...: one step is wrong; Spin must reject each variant.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef DISPATCHES
#define DISPATCHES 3
#endif
#ifndef LOCK
#define LOCK 0
#endif

#define PARTS 2
#define closed 15
/* Workgroups and parts of a dispatch, and the size of a part: blocks of one workgroup, in turn. */
#define total_of(d) (d == 1 -> 3 : (d == 2 -> 1 : 2))
#define parts_of(d) (d == 2 -> 1 : 2)
#define size(total, parts, part) ((total) / (parts) + ((part) < (total) % (parts)))
/* Generations are even while a dispatch is open: 2 for the first one. */
#define dispatch_of(generation) ((generation) / 2)
/* A ticket is a generation and the next workgroup; so is the count of ended ones. */
#define word(generation, value) ((generation) * 16 + (value))
#define generation_of(word) ((word) / 16)
#define value_in(word, generation) (generation_of(word) == (generation) -> (word) % 16 : 0)

/* Words of the slot. */
byte generation = 0, total = 0, parts = 1;
bool locked = false, finished = true, shown = false, in_use = false;
byte unended = 0;
short ticket[PARTS] = closed;
short ended[PARTS] = 0;

/* Guarded by the scheduler's mutex. */
bool mutex = false;
byte rest[PARTS] = 0, rest_end[PARTS] = 0;
bool has_rest = false;

/* Of the check itself: whether a workgroup has run, as part * 4 + its number within the part. */
bool ran[8] = false;
byte completed = 0;
bool stop = false;

#define lock() atomic { !mutex -> mutex = true }
#define unlock() mutex = false

/* Whoever ends the last workgroup finishes the dispatch. */
inline count_end(gen, part, part_size, part_count) {
  do
  :: old = ended[part];
     if
     :: part_count == 1 -> count = 0; break
     :: else -> count = value_in(old, gen) + 1
     fi;
     atomic {
       if
       :: ended[part] == old -> ended[part] = word(gen, count); break
       :: else
       fi
     }
  od;
  last = false;
  if
  :: part_count == 1 -> atomic { unended = unended - 1; last = (unended == 0) }
  :: part_count != 1 && count == part_size -> atomic { unended = unended - part_size; last = (unended == 0) }
  :: else
  fi;
  if
  :: last ->
     d_step {
       assert(completed == dispatch_of(gen) - 1);
       check = 0;
       do
       :: check < 8 -> assert(ran[check] == (check % 4 < size(total_of(dispatch_of(gen)), parts_of(dispatch_of(gen)), check / 4) && check / 4 < parts_of(dispatch_of(gen)))); ran[check] = false; check++
       :: else -> break
       od;
       completed++
     };
     finished = true;
     if
     :: shown -> shown = false
     :: else
     fi;
     in_use = false
  :: else
  fi
}

/* A worker runs a workgroup that it has claimed: it is of the open dispatch, and runs once. */
inline execute(gen, part, number) {
  d_step {
    assert(dispatch_of(gen) == completed + 1);
    assert(number < size(total_of(dispatch_of(gen)), parts_of(dispatch_of(gen)), part) && part < parts_of(dispatch_of(gen)));
    assert(!ran[part * 4 + number]);
    ran[part * 4 + number] = true
  }
}

active [WORKERS] proctype worker() {
  byte seen, seen_total, seen_parts, exhausted = 0, part, tried, next, after, count, check, left;
  bool seen_locked, last, all_closed, is_current;
  short old;
  do
  :: stop -> break
  :: shown && generation != exhausted ->
     seen = generation;
     if
     :: seen % 2 == 1 -> goto again
     :: else
     fi;
     seen_locked = locked;
     seen_total = total;
     seen_parts = parts;
#ifndef BROKEN_WORDS_NOT_READ_TOGETHER
     if
     :: generation != seen -> goto again
     :: else
     fi;
#endif
     if
     :: seen_locked -> goto claim_locked
     :: else
     fi;
     /* Its own part first. */
     tried = 0;
     all_closed = true;
     part = _pid % seen_parts;
     do
     :: tried == seen_parts -> break
     :: else ->
retry:
        old = ticket[part];
        next = value_in(old, seen);
        if
#ifndef BROKEN_LATE_WORKER
        :: generation_of(old) > seen -> next = closed
#endif
        :: else
        fi;
        if
        :: next != closed ->
           left = size(seen_total, seen_parts, part) - next;
           after = (left == 1 -> closed : next + 1);
           atomic {
             if
             :: ticket[part] == old -> ticket[part] = word(seen, after)
             :: else -> goto retry
             fi
           };
           execute(seen, part, next);
           count_end(seen, part, size(seen_total, seen_parts, part), seen_parts);
           all_closed = false;
           break
        :: else
        fi;
        tried++;
        part = (part + 1) % seen_parts
     od;
     if
#ifdef BROKEN_NO_SECOND_LOOK
     :: all_closed -> exhausted = seen
#else
     :: all_closed && !locked -> exhausted = seen
#endif
     :: else
     fi;
     goto again;
claim_locked:
     lock();
     part = PARTS;
     if
#ifdef BROKEN_REST_OF_A_FINISHED
     :: generation == seen && !finished -> is_current = true
#else
     :: generation == seen && has_rest -> is_current = true
#endif
     :: else -> is_current = false; exhausted = seen
     fi;
     if
     :: is_current ->
        /* The rest is a part of the dispatch, which is destroyed some time after it has finished. */
        assert(!finished);
        if
        :: rest[0] < rest_end[0] -> part = 0
        :: rest[0] >= rest_end[0] && rest[1] < rest_end[1] -> part = 1
        :: else -> exhausted = seen
        fi
     :: else
     fi;
     if
     :: part < PARTS ->
        next = rest[part];
        rest[part] = next + 1;
        has_rest = rest[0] < rest_end[0] || rest[1] < rest_end[1]
     :: else
     fi;
     unlock();
     if
     :: part < PARTS ->
        execute(seen, part, next);
        count_end(seen, part, size(seen_total, seen_parts, part), seen_parts)
     :: else
     fi;
again:
     skip
  od
}

/* The command processor's thread. */
active proctype launcher() {
  byte each, part;
  short old;
  each = 1;
  do
  :: each > DISPATCHES -> break
  :: else ->
     !in_use;
     in_use = true;
     unended = total_of(each);
     lock();
     finished = false;
     generation = generation + 1;
     locked = false;
     total = total_of(each);
     parts = parts_of(each);
     generation = generation + 1;
     shown = true;
#ifndef BROKEN_SHOWN_TOO_LATE
     if
     :: finished -> shown = false
     :: else
     fi;
#endif
     unlock();
     if
     :: each == LOCK ->
        lock();
        if
        :: in_use ->
#ifndef BROKEN_LOCKED_LAST
           locked = true;
#endif
           part = 0;
           do
           :: part == parts_of(each) -> break
           :: else ->
              rest[part] = 0;
              rest_end[part] = 0;
              atomic {
                old = ticket[part];
                ticket[part] = word(2 * each, closed)
              };
              if
              :: value_in(old, 2 * each) != closed ->
                 rest[part] = value_in(old, 2 * each);
                 rest_end[part] = size(total_of(each), parts_of(each), part);
                 has_rest = true
              :: else
              fi;
              part++
           od
#ifdef BROKEN_LOCKED_LAST
           ;
           locked = true
#endif
        :: else
        fi;
        unlock()
     :: else
     fi;
     each++
  od;
  !in_use;
  assert(completed == DISPATCHES);
  assert(!shown);
  stop = true
}
