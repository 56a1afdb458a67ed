"""Compiled core of the renderer: sphere tracing of smooth unions of tapered, cut and folded capsules; light and shadow.

All compiled functions live in this one file, because numba's cache does not see changes in another.

A body is N solids in world coordinates, in the order of their groups: `shape` (N, 14) holds both ends, both radii, the blend
width, the plane that cuts it (unit normal and offset: only n x < c is solid) and the depth of its folds, metres; `rest` (N, 12)
maps the world to the body's upright pose (three rows of a rotation, then an offset), where patterns and folds are drawn;
`kind` (N, 2) holds group and material. Solids of one group melt into each other; groups only meet.
"""

from __future__ import annotations

import math

import numpy as np

from mocap2ctrl.compiled import njit

TILE = 16
FAR = 1e9
MATERIALS = ("skin", "hair", "shirt", "trousers", "shoe")
SKIN, HAIR, SHIRT, TROUSERS, SHOE = range(5)
PLAIN, STRIPES, CHECKS = range(3)

MARGIN = 0.02
STEPS = 60
HIT = 8e-4
NEAR_SURFACE = 0.012
STEP_SHARE = 0.85
NORMAL_STEP = 1.5e-3
PHASES = 3
"""A pixel takes part in one of so many renderings: neighbours see other moments, which hides the steps of motion blur."""
TAPS = 16
_GOLDEN_ANGLE = 2.399963
TAP_X = np.sqrt((np.arange(TAPS) + 0.5) / TAPS) * np.cos(_GOLDEN_ANGLE * np.arange(TAPS))
TAP_Y = np.sqrt((np.arange(TAPS) + 0.5) / TAPS) * np.sin(_GOLDEN_ANGLE * np.arange(TAPS))


@njit
def _hash(x, y, z):
    """A number in [0, 1) of three integers."""
    h = (x * 374761393 + y * 668265263 + z * 2147483647 + 1013904223) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 2246822519) & 0xFFFFFFFF
    return ((h ^ (h >> 15)) & 0xFFFFFF) / 16777216.0


@njit
def _noise(x, y, z):
    """Smooth value noise, 0 to 1, with features of about one unit."""
    fx, fy, fz = math.floor(x), math.floor(y), math.floor(z)
    i, j, k = int(fx), int(fy), int(fz)
    u, v, w = x - fx, y - fy, z - fz
    u, v, w = u * u * (3.0 - 2.0 * u), v * v * (3.0 - 2.0 * v), w * w * (3.0 - 2.0 * w)
    total = 0.0
    for c in range(8):
        a, b, d = c & 1, (c >> 1) & 1, c >> 2
        share = (u if a else 1.0 - u) * (v if b else 1.0 - v) * (w if d else 1.0 - w)
        total += share * _hash(i + a, j + b, k + d)
    return total


@njit
def fractal_noise(x, y, octaves, seed, out):
    """Fills `out` (N,) with noise of `octaves` octaves, mean about 0.5, at x, y (N,); features of one unit and smaller."""
    for n in range(len(x)):
        total, weight, amount, u, v = 0.0, 0.0, 1.0, x[n], y[n]
        for octave in range(octaves):
            # Each octave is turned, so that the noise's grid does not show.
            u, v = 1.62 * u - 1.22 * v + 17.3, 1.22 * u + 1.62 * v - 9.1
            total += amount * _noise(u, v, seed + octave + 0.5)
            weight += amount
            amount *= 0.55
        out[n] = total / weight


@njit
def cell_values(i, j, seed, out):
    """Fills `out` (N,) with one random number in [0, 1) for each pair of integers i, j (N,)."""
    for n in range(len(i)):
        out[n] = _hash(i[n], j[n], seed)


@njit
def _rest_point(r, s, x, y, z):
    return (
        r[s, 0] * x + r[s, 1] * y + r[s, 2] * z + r[s, 9],
        r[s, 3] * x + r[s, 4] * y + r[s, 5] * z + r[s, 10],
        r[s, 6] * x + r[s, 7] * y + r[s, 8] * z + r[s, 11],
    )


@njit
def _folds(x, y, z):
    """Creases of cloth, -1 to 1, at a place of the upright body, metres."""
    bend = math.sin(23.0 * x + 11.0 * z + 1.3) + math.sin(19.0 * y - 8.0 * z)
    return 0.55 * math.sin(38.0 * z + 2.4 * bend) + 0.45 * math.sin(67.0 * z + 21.0 * x - 2.9 * bend + 2.0)


@njit
def _solid_distance(g, s, x, y, z):
    """Signed distance to solid s of the shapes g, about, without its folds."""
    px, py, pz = x - g[s, 0], y - g[s, 1], z - g[s, 2]
    ex, ey, ez = g[s, 3] - g[s, 0], g[s, 4] - g[s, 1], g[s, 5] - g[s, 2]
    along = (px * ex + py * ey + pz * ez) / (ex * ex + ey * ey + ez * ez + 1e-12)
    along = min(1.0, max(0.0, along))
    px, py, pz = px - along * ex, py - along * ey, pz - along * ez
    d = math.sqrt(px * px + py * py + pz * pz) - (g[s, 6] + along * (g[s, 7] - g[s, 6]))
    return max(d, g[s, 9] * x + g[s, 10] * y + g[s, 11] * z - g[s, 12])


@njit
def _folded(shape, rest, s, d, x, y, z):
    """A distance d to the group whose nearest solid is s, with the folds of its cloth."""
    if shape[s, 13] > 0.0 and d < NEAR_SURFACE:
        u, v, w = _rest_point(rest, s, x, y, z)
        return d + shape[s, 13] * _folds(u, v, w)
    return d


@njit
def _body_distance(shape, rest, kind, solids, count, x, y, z):
    """Signed distance to the listed solids, and which of them is the nearest."""
    best, nearest = FAR, -1
    merged, own, owner, group = FAR, FAR, -1, -1
    for n in range(count + 1):
        s = solids[n] if n < count else -1
        if n == count or kind[s, 0] != group:
            if owner >= 0:
                merged = _folded(shape, rest, owner, merged, x, y, z)
                if merged < best:
                    best, nearest = merged, owner
            if n == count:
                break
            merged, own, owner, group = FAR, FAR, -1, kind[s, 0]
        d = _solid_distance(shape, s, x, y, z)
        if d < own:
            own, owner = d, s
        width = shape[s, 8]
        overlap = max(width - abs(merged - d), 0.0)
        merged = min(merged, d) - (0.25 * overlap * overlap / width if overlap > 0.0 else 0.0)
    return best, nearest


@njit
def tile_solids(rays, width, height, shape, lists, counts, near, far):
    """For each tile of `TILE` pixels, which solids its rays may meet, and where the first and the last may be met.

    `rays` (6, 3): the ray of pixel (x, y) starts at rays[0] + x rays[1] + y rays[2], its direction is rays[3] + x rays[4] + y
    rays[5], scaled to length 1.
    """
    across = (width + TILE - 1) // TILE
    for tile in range(len(counts)):
        x, y = (tile % across + 0.5) * TILE - 0.5, (tile // across + 0.5) * TILE - 0.5
        half = 0.5 * TILE + 1.0
        start = rays[0] + x * rays[1] + y * rays[2]
        direction = rays[3] + x * rays[4] + y * rays[5]
        length = math.sqrt(np.dot(direction, direction))
        direction = direction / length
        spread = half * (math.sqrt(np.dot(rays[4], rays[4])) + math.sqrt(np.dot(rays[5], rays[5]))) / length
        offset = half * (math.sqrt(np.dot(rays[1], rays[1])) + math.sqrt(np.dot(rays[2], rays[2])))
        counts[tile], near[tile], far[tile] = 0, FAR, 0.0
        for s in range(len(shape)):
            a, b = shape[s, 0:3] - start, shape[s, 3:6] - start
            ta, tb = np.dot(a, direction), np.dot(b, direction)
            pa, pb = a - ta * direction, b - tb * direction
            e = pb - pa
            share = min(1.0, max(0.0, -np.dot(pa, e) / (np.dot(e, e) + 1e-12)))
            gap = pa + share * e
            reach = max(shape[s, 6], shape[s, 7]) + shape[s, 13] + MARGIN
            depth = max(ta, tb)
            if math.sqrt(np.dot(gap, gap)) < reach + offset + max(depth, 0.0) * spread:
                lists[tile, counts[tile]] = s
                counts[tile] += 1
                near[tile] = min(near[tile], min(ta, tb) - reach - offset)
                far[tile] = max(far[tile], depth + reach + offset)
        near[tile] = max(near[tile], 0.0)


@njit
def _trace(shape, rest, kind, solids, count, ox, oy, oz, dx, dy, dz, near, far):
    """Distance along a ray to the body and the solid it meets; (FAR, -1) for a miss or a place under the ground."""
    t = near
    for _ in range(STEPS):
        x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
        if z < 0.0:
            break
        d, s = _body_distance(shape, rest, kind, solids, count, x, y, z)
        if d < HIT:
            return t, s
        t += STEP_SHARE * d
        if t > far:
            break
    return FAR, -1


@njit
def depth_map(rays, width, height, shape, rest, kind, lists, counts, near, far, out):
    """Fills `out` (height, width) with the distance along each ray to the body; FAR where it misses."""
    across = (width + TILE - 1) // TILE
    for y in range(height):
        for x in range(width):
            tile = (y // TILE) * across + x // TILE
            out[y, x] = FAR
            if counts[tile] > 0:
                o = rays[0] + x * rays[1] + y * rays[2]
                d = rays[3] + x * rays[4] + y * rays[5]
                d = d / math.sqrt(np.dot(d, d))
                out[y, x] = _trace(
                    shape,
                    rest,
                    kind,
                    lists[tile],
                    counts[tile],
                    o[0],
                    o[1],
                    o[2],
                    d[0],
                    d[1],
                    d[2],
                    near[tile],
                    far[tile],
                )[0]


@njit
def _sunlight(x, y, z, sun, turn, bias):
    """Share of the sun that a place sees.

    `sun` is (depths (h, w), frame (4, 3)): rows u, v, towards the sun, and (u, v of the first cell; metres a cell); the depths
    are coordinates towards the sun, -FAR where nothing stands.
    """
    depths, frame, softness = sun
    cell = frame[3, 2]
    u = (frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z - frame[3, 0]) / cell
    v = (frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z - frame[3, 1]) / cell
    s = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z + bias
    height, width = depths.shape
    reach = 0.05 / cell
    if u < -reach or v < -reach or u > width + reach or v > height + reach:
        return 1.0
    cosine, sine = math.cos(turn), math.sin(turn)
    for stage in range(2):
        blocked, above = 0, 0.0
        for tap in range(TAPS):
            across, along = cosine * TAP_X[tap] - sine * TAP_Y[tap], sine * TAP_X[tap] + cosine * TAP_Y[tap]
            i, j = math.floor(v + reach * along + 0.5), math.floor(u + reach * across + 0.5)
            if 0 <= i < height and 0 <= j < width and depths[i, j] > s:
                blocked += 1
                above += depths[i, j] - s
        if stage == 0:
            if blocked == 0:
                return 1.0
            reach = min(max(softness * above / blocked, 0.7 * cell), 0.12) / cell
    return 1.0 - blocked / TAPS


@njit
def ground_light(points, balls, sun, light, sky):
    """Fills `light` and `sky` (h, w) with the shares of sun and sky that points (h, w, 3) of the ground see.

    `balls` (M, 4), centre and radius, stand for the body where it takes away the sky.
    """
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            x, y, z = points[i, j, 0], points[i, j, 1], points[i, j, 2]
            light[i, j], sky[i, j] = 1.0, 1.0
            if z > 1e-3:
                continue
            light[i, j] = _sunlight(x, y, z, sun, 6.2831853 * _hash(i, j, 5), 0.004)
            seen = 1.0
            for m in range(len(balls)):
                bx, by, bz, r = balls[m, 0] - x, balls[m, 1] - y, balls[m, 2], balls[m, 3]
                d2 = max(bx * bx + by * by + bz * bz, r * r)
                seen *= 1.0 - 0.75 * max(bz, 0.35 * r) / math.sqrt(d2) * r * r / d2
            sky[i, j] = seen


@njit
def _normal(shape, rest, kind, solids, count, x, y, z):
    e = NORMAL_STEP
    here = _body_distance(shape, rest, kind, solids, count, x, y, z)[0]
    nx = _body_distance(shape, rest, kind, solids, count, x + e, y, z)[0] - here
    ny = _body_distance(shape, rest, kind, solids, count, x, y + e, z)[0] - here
    nz = _body_distance(shape, rest, kind, solids, count, x, y, z + e)[0] - here
    length = math.sqrt(nx * nx + ny * ny + nz * nz) + 1e-12
    return nx / length, ny / length, nz / length


@njit
def _skylight(shape, rest, kind, solids, count, x, y, z, nx, ny, nz):
    """Share of the sky that is not hidden by the body itself nearby."""
    hidden = 0.0
    for step in range(1, 3):
        e = 0.035 * step
        d = _body_distance(shape, rest, kind, solids, count, x + e * nx, y + e * ny, z + e * nz)[0]
        hidden += 0.5 * max(e - d, 0.0) / e
    return max(1.0 - 0.9 * hidden, 0.1)


@njit
def _bump(value, centre, width):
    q = (value - centre) / width
    return math.exp(-q * q)


@njit
def _face(x, y, z, size):
    """How much (dark, red) a face's features tint the skin at a place (x, y, z) in the head's frame."""
    if x < 0.05 * size:
        return 0.0, 0.0
    y, z = abs(y) / size, z / size
    eye = _bump(y, 0.032, 0.011) * _bump(z, 0.192, 0.006)
    brow = 0.7 * _bump(y, 0.033, 0.018) * _bump(z, 0.211, 0.0045)
    mouth = _bump(y, 0.0, 0.022) * _bump(z, 0.122, 0.006)
    return max(eye, brow), mouth


@njit
def _albedo(material, u, v, w, colours, patterns, head):
    """Reflectances (r, g, b) at a place (u, v, w) of the upright body; `head` is its head's joint there and its size."""
    first, second = colours[material, 0], colours[material, 1]
    share, tone = 0.0, 1.0
    if material == SKIN:
        dark, red = _face(u - head[0], v - head[1], w - head[2], head[3])
        tone = (1.0 - 0.75 * dark) * (0.97 + 0.06 * _noise(60.0 * u, 60.0 * v, 60.0 * w))
        share = 0.7 * red
    elif material == HAIR:
        tone = 0.55 + 0.9 * _noise(140.0 * v, 140.0 * u, 25.0 * w)
    elif material == SHIRT:
        if patterns[0] == STRIPES:
            q = w / patterns[1]
            share = 1.0 if q - math.floor(q) < patterns[2] else 0.0
        elif patterns[0] == CHECKS:
            q, p = w / patterns[1], math.atan2(v, u) * 0.16 / patterns[1]
            share = 0.5 * ((q - math.floor(q) < patterns[2]) + (p - math.floor(p) < patterns[2]))
        tone = 0.92 + 0.16 * _noise(210.0 * u, 210.0 * v, 210.0 * w)
    elif material == TROUSERS:
        worn = _noise(7.0 * u, 7.0 * v, 5.0 * w)
        share = 0.55 * max(0.0, 2.2 * worn - 0.9)
        tone = 0.88 + 0.24 * _noise(240.0 * u, 240.0 * v, 120.0 * w)
    elif w < 0.03:
        share = 1.0
    return (
        tone * (first[0] + share * (second[0] - first[0])),
        tone * (first[1] + share * (second[1] - first[1])),
        tone * (first[2] + share * (second[2] - first[2])),
    )


@njit
def draw_body(rays, jitter, turn, shape, rest, kind, tiles, sun, lamps, colours, patterns, head, out):
    """Adds one sample a pixel to `out` (h, w, 4): light of the body, red, green and blue, and 1 where it is.

    Args:
        rays: of the box's pixels; see `tile_solids`.
        jitter: (2,) where in the pixels the sample lies.
        turn: (4,) which pixels take part: the phase (0 to `PHASES` - 1), what shuffles the pixels, and x, y of the first one.
        shape, rest, kind: the body.
        tiles: what `tile_solids` filled: lists, counts, near, far.
        sun: see `_sunlight`.
        lamps: (3, 3) colours of the sun, the sky, and the light that comes back from the ground.
        colours: (materials, 2, 3) reflectances.
        patterns: the shirt's: kind, period, share.
        head: (4,) the head's joint in the upright pose, and its size.
        out: changed in place.
    """
    lists, counts, nears, fars = tiles
    height, width = out.shape[:2]
    across = (width + TILE - 1) // TILE
    to_sun = sun[1][2]
    for i in range(height):
        for j in range(width):
            tile = (i // TILE) * across + j // TILE
            count = counts[tile]
            if count == 0 or int(PHASES * _hash(i + turn[3], j + turn[2], turn[1])) != turn[0]:
                continue
            solids = lists[tile]
            px, py = j + jitter[0], i + jitter[1]
            ox, oy, oz = rays[0, 0], rays[0, 1], rays[0, 2]
            dx = rays[3, 0] + px * rays[4, 0] + py * rays[5, 0]
            dy = rays[3, 1] + px * rays[4, 1] + py * rays[5, 1]
            dz = rays[3, 2] + px * rays[4, 2] + py * rays[5, 2]
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            dx, dy, dz = dx / length, dy / length, dz / length
            t, s = _trace(shape, rest, kind, solids, count, ox, oy, oz, dx, dy, dz, nears[tile], fars[tile])
            if s < 0:
                continue
            x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
            nx, ny, nz = _normal(shape, rest, kind, solids, count, x, y, z)
            u, v, w = _rest_point(rest, s, x, y, z)
            albedo = _albedo(kind[s, 1], u, v, w, colours, patterns, head)
            cosine = nx * to_sun[0] + ny * to_sun[1] + nz * to_sun[2]
            direct = 0.0
            if cosine > 0.0:
                e = 0.012
                angle = 6.2831853 * _hash(i, j, 3)
                direct = cosine * _sunlight(x + e * nx, y + e * ny, z + e * nz, sun, angle, 0.012)
            seen = _skylight(shape, rest, kind, solids, count, x, y, z, nx, ny, nz)
            above = seen * (0.5 + 0.5 * nz)
            below = seen * (0.5 - 0.5 * nz) * min(1.0, 0.35 + 1.5 * z)
            for c in range(3):
                light = direct * lamps[0, c] + above * lamps[1, c] + below * lamps[2, c]
                out[i, j, c] += albedo[c] * light
            out[i, j, 3] += 1.0
