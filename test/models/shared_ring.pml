/* The protocol of aql/shared_ring.hpp: several producers, one ring, one packet processor. README.md
 * lists the checks and how to run them.
 *
 * A step is one access to shared memory, or several of which other processes can observe only one.
 * Spin tries every interleaving. Indices are bytes and count modulo 256 from START, so indices and
 * ring slots wrap around within a run.
 *
 * -DEAGER: the processor takes each packet as soon as its header is valid, also beyond the write
 * index, as the specification allows.
 * -DBROKEN_...: one step is wrong; Spin must reject each variant.
 */
#ifndef PRODUCERS
#define PRODUCERS 3
#endif
#ifndef PUBLICATIONS
#define PUBLICATIONS 2 /* per producer */
#endif
#ifndef LENGTH
#define LENGTH (1 + (me + publication) % 2) /* of a publication, in packets */
#endif
#ifndef RING
#define RING 4
#endif
#ifndef START
#define START 253
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* limit for a committer while another producer will follow */
#endif

#define modulo(x) ((x) & 255)
#define slot(index) ((index) % RING)
#define fits(next, count, read) (modulo((next) + (count) - (read)) <= RING)
/* A slot is free when the processor has taken its packet and the packet's publication is committed,
 * so that its producer will not store its mark any more. */
#ifdef BROKEN_NOT_YET_COMMITTED
#define has_room(next, count) (fits(next, count, read_index))
#else
#define has_room(next, count) (fits(next, count, read_index) && fits(next, count, committed))
#endif
/* A mark is twice the index one past its publication's end; a taken mark is odd. A mark of another
 * lap is not within one ring length after `at`. */
#define doubled(x) ((x) & 511)
#define mark_of(end) doubled(2 * (end))
#define end_of(mark) ((mark) / 2)
#ifdef BROKEN_TAKEN_LOOKS_READY
#define taken_mark(at) mark_of(at) /* the mark of RING packets from at - RING */
#else
#define taken_mark(at) doubled(2 * (at) + 1)
#endif
#define is_ready(at, mark) (doubled((mark) - 2 * (at)) % 2 == 0 && doubled((mark) - 2 * (at) - 1) < 2 * RING)
#define invalid 0
#define packet(producer, number) ((producer) * 16 + (number) + 1)

/* State that the packet processor reads. */
byte header[RING] = invalid;
byte write_index = START, read_index = START;
byte doorbell = START; /* one past the packet that was rung last */

/* State that the producers share. */
byte claimed = START, committed = START;
short mark[RING] = taken_mark(START);

/* Counters of the check itself. */
byte published = 0, consumed = 0;

#ifdef EAGER
#define taken_early(at) (modulo(read_index - (at) - 1) < 2 * RING)
#else
#define taken_early(at) (false)
#endif

/* Only the committer stores these. Invariant 6 covers the order: doorbell last. */
inline show_up_to(to) {
  d_step {
    assert(modulo(to - write_index) <= RING); /* never backwards */
    assert(modulo(to - doorbell) - 1 < RING); /* never backwards, never twice */
    at = write_index;
    do
    :: at != to -> assert(header[slot(at)] != invalid || taken_early(at)); at = modulo(at + 1)
    :: else -> break
    od;
    write_index = to; doorbell = to; at = 0
  }
}

/* Advances `end` over all ready publications. */
inline go_over_ready() {
  do
  :: atomic {
       seen = mark[slot(end)];
       if
       :: is_ready(end, seen) -> end = end_of(seen); seen = 0
       :: else -> seen = 0; break
       fi
     }
  od
}

proctype producer(byte me) {
  short seen;
  byte first, end, number, at, rounds, publication;

  do
  :: publication == PUBLICATIONS -> break
  :: else ->
    /* Claim, one step: the read index that proved the room can only have grown since, and the
     * compare-and-swap fails if `claimed` has moved. */
    atomic {
      has_room(claimed, LENGTH) ->
      first = claimed; claimed = modulo(first + LENGTH); end = claimed
    };
#ifdef BROKEN_WRITE_INDEX_FIRST
    show_up_to(end);
#endif

    /* Fill, and read whose turn it is. */
    atomic {
      at = first;
      do
      :: at != end ->
        assert(header[slot(at)] == invalid); /* the slot is free */
        header[slot(at)] = packet(me, number);
        number++; published++; at = modulo(at + 1)
      :: else -> break
      od;
      at = 0;
      if
      :: committed == first -> first = 0; goto in_turn
      :: else -> skip
      fi
    };

    /* Leave a mark. */
#ifdef BROKEN_WEAK_MARK
    at = committed; /* before the store of the mark, as a plain load on x86 */
    atomic { mark[slot(first)] = mark_of(end); first = 0; end = 0; goto look };
#else
    atomic { mark[slot(first)] = mark_of(end); first = 0; end = 0 };
#endif

take_over:
    at = committed;
look:
    atomic {
      seen = mark[slot(at)];
      if
      :: !is_ready(at, seen) -> goto done
      :: else -> skip
      fi
    };
#ifdef BROKEN_TAKE_OVER_TWICE
    /* not compared */
    atomic { mark[slot(at)] = taken_mark(at); end = end_of(seen); at = 0; seen = 0 };
#else
    atomic {
      if
      :: mark[slot(at)] == seen -> mark[slot(at)] = taken_mark(at); end = end_of(seen); at = 0; seen = 0
      :: else -> goto done /* another producer has taken over */
      fi
    };
#endif

in_turn:
    go_over_ready();
#ifdef BROKEN_HANDS_OVER_FIRST
    committed = end;
    show_up_to(end);
#else
    show_up_to(end);
    committed = end;
#endif
#ifdef BROKEN_NO_SECOND_LOOK
    goto done;
#endif
    if
    :: rounds < ROUNDS -> rounds++
    :: else -> skip
    fi;
    if
    :: rounds == ROUNDS ->
      go_over_ready();
#ifdef BROKEN_LEAVES_NOBODY
      goto done;
#else
      atomic {
        if
        :: end != claimed -> goto done /* a claimed slot is not filled: its producer will check */
        :: else -> end = 0
        fi
      }
#endif
    :: else -> end = 0
    fi;
    goto take_over;

done:
    atomic { first = 0; end = 0; at = 0; seen = 0; rounds = 0; publication++ }
  od
}

/* Takes every packet that the doorbell covers; reads nothing else to decide. EAGER: every packet
 * whose header is valid. */
#ifdef EAGER
#define takes (header[slot(read_index)] != invalid)
#else
#define takes (doorbell != read_index)
#endif
proctype processor() {
  byte taken, next[PRODUCERS];
end_idle:
  do
  :: takes ->
    d_step {
      taken = header[slot(read_index)];
      assert(taken != invalid);
#ifndef EAGER
      assert(modulo(write_index - read_index - 1) < RING);
#endif
      /* each producer's packets once and in order */
      assert(next[(taken - 1) / 16] == (taken - 1) % 16);
      next[(taken - 1) / 16]++;
      consumed++;
      taken = 0;
      header[slot(read_index)] = invalid;
      read_index = modulo(read_index + 1)
    }
  od
}

/* When no process can make a step, every packet has been taken: no doorbell was lost. */
proctype lost_doorbell() {
end_watching:
  timeout -> assert(consumed == published && committed == claimed && write_index == claimed)
}

init {
  atomic {
    byte i = 0;
    do
    :: i < PRODUCERS -> run producer(i); i++
    :: else -> break
    od;
    run processor();
    run lost_doorbell()
  }
}
