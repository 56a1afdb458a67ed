"""The movements: each draws one performance, with its own amplitudes and timing, as key postures and their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exercises.posture import Arm, Foot, Posture

Key = tuple[float, Posture]
"""Seconds, and the posture at that moment."""

Movement = Callable[[np.random.Generator], list[Key]]


def cycle(postures: list[Posture], beat_s: float, rounds: int) -> list[Key]:
    """Postures one after the other, a beat apart, over and over, and back to the first."""
    order = postures * rounds + postures[:1]
    return [(beat_s * number, posture) for number, posture in enumerate(order)]


def both_arms(posture: Posture, arm: Arm) -> Posture:
    """The posture with both arms alike."""
    return replace(posture, left_arm=arm, right_arm=arm)


def both_feet(posture: Posture, foot: Foot) -> Posture:
    """The posture with both feet alike."""
    return replace(posture, left_foot=foot, right_foot=foot)


def hanging(rng: np.random.Generator) -> Arm:
    """An arm at rest."""
    return Arm(rng.uniform(2, 18), rng.uniform(-12, 15), rng.uniform(-15, 50), rng.uniform(5, 40))


def standing(rng: np.random.Generator) -> Posture:
    """Somebody who stands: feet more or less apart, arms at rest, never quite straight."""
    foot = Foot(0.0, rng.uniform(-0.02, 0.05), 0.0, rng.uniform(0, 20))
    trunk = {"tip": rng.uniform(-4, 8), "bend": rng.uniform(-6, 10), "nod": rng.uniform(-10, 15)}
    posture = Posture(hanging(rng), hanging(rng), foot, foot, rng.uniform(0.003, 0.02), **trunk)
    return replace(posture, back=rng.uniform(-0.01, 0.01))


def idle(rng: np.random.Generator) -> list[Key]:
    """Weight from foot to foot, arms that find no rest."""
    first = standing(rng)
    second = replace(first, shift=0.03, list_left=-4, lean=4, left_arm=hanging(rng), right_arm=hanging(rng))
    akimbo = Arm(rng.uniform(35, 55), rng.uniform(-30, -10), rng.uniform(55, 85), rng.uniform(80, 105))
    third = both_arms(replace(first, shift=-0.03, list_left=4, lean=-4), akimbo)
    return cycle([first, second, third], rng.uniform(0.6, 1.0), 1)


def wave_one(rng: np.random.Generator) -> list[Key]:
    """One arm raised at the side, and swung from the shoulder, the elbow or both."""
    rest = standing(rng)
    high, low = rng.uniform(130, 185), rng.uniform(60, 120)
    turned = rng.uniform(-95, -20)
    up = Arm(high, rng.uniform(-10, 25), turned, rng.uniform(0, 60), rng.uniform(-20, 10))
    down = Arm(low, rng.uniform(-10, 25), turned, rng.uniform(0, 90), rng.uniform(-10, 20))
    raised = [replace(rest, left_arm=arm, lean=rng.uniform(-8, 4)) for arm in (up, down)]
    return cycle([rest, *raised, *raised], rng.uniform(0.3, 0.5), 1)


def wave_both(rng: np.random.Generator) -> list[Key]:
    """Both arms up and down at the sides, straight or bent."""
    rest = standing(rng)
    turned, bent = rng.uniform(-90, -10), rng.uniform(0, 50)
    high = Arm(rng.uniform(140, 195), rng.uniform(-10, 20), turned, bent)
    low = Arm(rng.uniform(40, 100), rng.uniform(-10, 20), turned, rng.uniform(0, 60))
    crossed = Arm(rng.uniform(150, 185), rng.uniform(0, 30), turned, rng.uniform(40, 100))
    return cycle([both_arms(rest, arm) for arm in (low, high, crossed, high)], rng.uniform(0.3, 0.5), 1)


def reach_up(rng: np.random.Generator) -> list[Key]:
    """Arms lifted to the front until they point up, on tiptoe or not."""
    rest = standing(rng)
    arm = Arm(rng.uniform(0, 20), rng.uniform(140, 180), rng.uniform(-30, 20), rng.uniform(0, 30))
    half = replace(arm, forward=rng.uniform(60, 110))
    toes = Foot(0.0, rest.left_foot.aside, 0.0, 5.0, rng.uniform(0, 35))
    top = both_feet(both_arms(replace(rest, bend=-8, nod=-20, drop=-0.02), arm), toes)
    one = replace(both_arms(rest, half), left_arm=arm)
    return cycle([rest, both_arms(rest, half), top, one], rng.uniform(0.35, 0.6), 1)


def jumping_jack(rng: np.random.Generator) -> list[Key]:
    """Feet apart and arms overhead, feet together and arms down, in the air between."""
    rest = standing(rng)
    closed = both_feet(replace(rest, drop=rng.uniform(0.01, 0.05)), Foot(aside=rng.uniform(-0.03, 0.01)))
    wide = rng.uniform(0.06, 0.16)
    turned, bent = rng.uniform(-90, 0), rng.uniform(0, 40)
    top = Arm(rng.uniform(140, 200), rng.uniform(-10, 20), turned, bent)
    level = Arm(rng.uniform(70, 110), rng.uniform(-10, 20), turned, rng.uniform(0, 40))
    low = replace(hanging(rng), aside=rng.uniform(5, 35))
    flight = both_feet(both_arms(closed, level), Foot(0.0, 0.5 * wide, 0.03, 8.0, 25.0))
    opened = both_feet(
        both_arms(replace(closed, drop=0.01 + 0.4 * wide), top), Foot(aside=wide, heel=rng.uniform(0, 20))
    )
    air = replace(flight, drop=-0.03)
    return cycle([both_arms(closed, low), air, opened, air], rng.uniform(0.16, 0.24), 2)


def bend_down(rng: np.random.Generator) -> list[Key]:
    """Down to pick something up from the floor, the arms hanging, the knees more or less straight."""
    rest = standing(rng)
    tip, bend = rng.uniform(25, 60), rng.uniform(40, 90)
    knees = rng.uniform(0.005, 0.08)
    reach = Arm(rng.uniform(0, 15), rng.uniform(0.7, 1.3) * (tip + bend), rng.uniform(-20, 40), rng.uniform(0, 50))
    low = replace(rest, tip=tip, bend=bend, drop=knees, back=rng.uniform(0.02, 0.09), nod=rng.uniform(-20, 30))
    half = both_arms(
        replace(low, tip=0.5 * tip, bend=0.5 * bend, drop=0.5 * knees, back=0.5 * low.back),
        replace(reach, forward=0.5 * reach.forward),
    )
    down = both_arms(low, reach)
    one = replace(down, left_arm=hanging(rng), twist=rng.uniform(0, 15))
    return cycle([rest, half, down, one, half], rng.uniform(0.35, 0.55), 1)


def squat(rng: np.random.Generator) -> list[Key]:
    """Hips down between or behind the heels, arms in front."""
    rest = standing(rng)
    drop = rng.uniform(0.08, 0.3)
    arm = Arm(rng.uniform(0, 20), rng.uniform(10, 100), rng.uniform(-20, 40), rng.uniform(0, 60))
    feet = Foot(0.0, rng.uniform(0.0, 0.06), 0.0, rng.uniform(5, 25), rng.uniform(0, 20))
    low = replace(rest, drop=drop, back=rng.uniform(0.2, 0.5) * drop, tip=rng.uniform(5, 40), bend=rng.uniform(0, 35))
    return cycle([both_feet(rest, feet), both_feet(both_arms(low, arm), feet)], rng.uniform(0.5, 0.8), 1)


def sit_down(rng: np.random.Generator) -> list[Key]:
    """Onto a chair that is not there, leaning forward on the way."""
    rest = standing(rng)
    arm = Arm(rng.uniform(5, 15), rng.uniform(20, 50), rng.uniform(0, 40), rng.uniform(30, 80))
    way = both_arms(replace(rest, drop=0.12, back=0.12, tip=rng.uniform(15, 35), bend=rng.uniform(15, 40)), arm)
    sat = both_arms(replace(rest, drop=0.26, back=rng.uniform(0.2, 0.24), tip=rng.uniform(-20, 5), bend=10), arm)
    return cycle([rest, way, sat, sat, way], rng.uniform(0.4, 0.6), 1)


def side_step(rng: np.random.Generator) -> list[Key]:
    """To the left: the left foot goes out, the right one follows, walking or galloping."""
    rest = standing(rng)
    wide, lift = rng.uniform(0.06, 0.16), rng.uniform(0.0, 0.04)
    hop = rng.uniform(-0.02, 0.02)
    together = both_feet(replace(rest, drop=hop), Foot(aside=rng.uniform(-0.03, 0.0), lift=lift, heel=10 + 300 * lift))
    lifted = Foot(aside=0.6 * wide, lift=0.02, heel=15)
    out = replace(rest, drop=0.01, left_foot=lifted, right_foot=Foot(aside=0.3 * wide), lean=rng.uniform(-6, 6))
    apart = replace(rest, drop=0.01 + 0.35 * wide, left_foot=Foot(aside=wide), right_foot=Foot(aside=wide, heel=10))
    return cycle([together, out, apart], rng.uniform(0.15, 0.3), 2)


def knees_up(rng: np.random.Generator) -> list[Key]:
    """Marching on the spot, the arms against the legs."""
    rest = standing(rng)
    lift = rng.uniform(0.08, 0.28)
    up = Foot(rng.uniform(0.05, 0.2), 0.0, lift, 5.0, rng.uniform(0, 40))
    swing, bent = rng.uniform(5, 50), rng.uniform(10, 90)
    fore, aft = Arm(8, swing, 10, bent), Arm(8, -swing, 10, bent)
    left = replace(rest, left_foot=up, left_arm=aft, right_arm=fore, shift=-0.03)
    right = replace(rest, right_foot=up, left_arm=fore, right_arm=aft, shift=0.03)
    return cycle([left, rest, right, rest], rng.uniform(0.18, 0.35), 1)


def jump_up(rng: np.random.Generator) -> list[Key]:
    """Both feet off the ground and back, in place or forward, the arms down or helping."""
    rest = standing(rng)
    drop, go = rng.uniform(0.02, 0.14), rng.uniform(-0.02, 0.1)
    lean = {"tip": rng.uniform(0, 25), "bend": rng.uniform(0, 25)}
    low = replace(rest, drop=drop, back=rng.uniform(0.1, 0.4) * drop, **lean)
    push = both_feet(replace(rest, drop=-0.03), Foot(-go, rest.left_foot.aside, 0.0, 5, rng.uniform(20, 45)))
    air = both_feet(replace(rest, drop=rng.uniform(-0.06, 0.0)), Foot(0.3 * go, 0.01, 0.03, 5, rng.uniform(10, 45)))
    land = both_feet(replace(rest, drop=0.03, **lean), Foot(go, rest.left_foot.aside))
    if rng.random() < 0.5:
        swing = Arm(10, rng.uniform(20, 90), 0, rng.uniform(10, 70))
        push, low = both_arms(push, swing), both_arms(low, Arm(10, -rng.uniform(10, 50), 0, 20))
    return cycle([low, push, air, land], rng.uniform(0.13, 0.22), 2)


def hop(rng: np.random.Generator) -> list[Key]:
    """On the left foot, the other one held behind or below."""
    rest = standing(rng)
    held = Foot(-rng.uniform(0.08, 0.28), -0.01, rng.uniform(0.05, 0.25), 5, rng.uniform(20, 85))
    swung = replace(held, ahead=held.ahead + rng.uniform(0.0, 0.15))
    arms = Arm(10, rng.uniform(-30, 50), 10, rng.uniform(10, 100))
    low = replace(rest, drop=rng.uniform(0.02, 0.08), right_foot=held, tip=rng.uniform(0, 15), left_arm=arms)
    push = replace(low, drop=-0.03, left_foot=Foot(-0.08, 0.0, 0.0, 5, rng.uniform(20, 45)), right_foot=swung)
    air = replace(low, drop=-0.02, left_foot=Foot(0.0, 0.0, 0.03, 5, 30), right_arm=arms)
    land = replace(low, drop=0.02, left_foot=Foot(rng.uniform(0.02, 0.1), 0.0))
    return cycle([low, push, air, land], rng.uniform(0.12, 0.2), 2)


def step(rng: np.random.Generator) -> list[Key]:
    """Steps and lunges of any length, upright or leaning, the arms against the legs."""
    rest = standing(rng)
    length, drop = rng.uniform(0.05, 0.2), rng.uniform(0.0, 0.06)
    swing, bent = rng.uniform(5, 40), rng.uniform(5, 60)
    fore, aft = Arm(8, swing, 10, bent), Arm(8, -swing, 10, bent)
    lead, trail = Foot(length, 0.0, 0.0, 5), Foot(-length, 0.0, 0.0, 5, rng.uniform(20, 50))
    through = Foot(-0.05, 0.0, rng.uniform(0.02, 0.08), 5, rng.uniform(20, 60))
    low = 0.01 + drop + 1.1 * length**2
    split = replace(rest, drop=low, left_foot=lead, right_foot=trail, left_arm=aft, right_arm=fore)
    passing = replace(rest, right_foot=through)
    other = replace(rest, drop=low, left_foot=trail, right_foot=lead, left_arm=fore, right_arm=aft)
    return cycle([split, passing, other, replace(rest, left_foot=through)], rng.uniform(0.16, 0.35), 1)


def turn_round(rng: np.random.Generator) -> list[Key]:
    """On the spot to the left: head and trunk first, then foot after foot."""
    rest = standing(rng)
    twist = rng.uniform(20, 50)
    look = replace(rest, twist=twist, left_foot=Foot(lift=0.03, heel=15, out=rng.uniform(20, 45)), shift=-0.03)
    open_ = replace(rest, twist=0.3 * twist, left_foot=Foot(out=rng.uniform(25, 45)), shift=0.02)
    close = replace(rest, right_foot=Foot(lift=0.03, heel=15, out=rng.uniform(-20, 0)), twist=-0.2 * twist, shift=0.03)
    return cycle([rest, look, open_, close], rng.uniform(0.25, 0.4), 1)


def stretch(rng: np.random.Generator) -> list[Key]:
    """Side bends and twists with arms out, overhead or at the hips."""
    rest = standing(rng)
    lean, twist = rng.uniform(10, 45), rng.uniform(10, 60)
    out = Arm(rng.uniform(75, 100), rng.uniform(-5, 15), rng.uniform(-80, 0), rng.uniform(0, 20))
    over = Arm(rng.uniform(150, 185), 0.0, -30.0, rng.uniform(0, 60))
    akimbo = Arm(rng.uniform(35, 55), rng.uniform(-30, -10), rng.uniform(55, 85), rng.uniform(80, 105))
    left = replace(both_arms(rest, akimbo), right_arm=over, lean=lean)
    right = replace(both_arms(rest, out), lean=-lean, twist=-twist)
    return cycle([both_arms(rest, out), left, both_arms(rest, out), right], rng.uniform(0.4, 0.6), 1)


def hands_together(rng: np.random.Generator) -> list[Key]:
    """Clapping, boxing, carrying, scratching the head: hands in front of the trunk."""
    rest = standing(rng)
    guard = Arm(rng.uniform(5, 40), rng.uniform(10, 60), rng.uniform(0, 60), rng.uniform(80, 140))
    apart = Arm(rng.uniform(20, 60), rng.uniform(20, 80), rng.uniform(-60, 0), rng.uniform(40, 100))
    straight = Arm(rng.uniform(0, 20), rng.uniform(60, 100), rng.uniform(-20, 20), rng.uniform(0, 40))
    head = Arm(rng.uniform(60, 110), rng.uniform(0, 40), rng.uniform(-90, -40), rng.uniform(110, 145))
    one = replace(both_arms(rest, guard), left_arm=straight, twist=-15)
    return cycle([both_arms(rest, guard), both_arms(rest, apart), one, both_arms(rest, head)], rng.uniform(0.3, 0.5), 1)


MOVEMENTS: dict[str, Movement] = {
    movement.__name__: movement
    for movement in (
        idle,
        wave_one,
        wave_both,
        reach_up,
        jumping_jack,
        bend_down,
        squat,
        sit_down,
        side_step,
        knees_up,
        jump_up,
        hop,
        step,
        turn_round,
        stretch,
        hands_together,
    )
}
