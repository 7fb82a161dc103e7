import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const EARTH_RADIUS = 6_378_100;
const RUNS = process.env.FAULTS === 'full' ? 10_000 : 200;

const point = (lng: number, lat: number) => ({ type: 'Point', coordinates: [lng, lat] });
const polygon = (...ring: number[][]) => ({ type: 'Polygon', coordinates: [ring] });

function indexed(documents: TestDocuments, name: string, index: Document): void {
  documents.run({ createIndexes: name, indexes: [{ name: 'geo', ...index }] });
}

const coordinates = fc.oneof(
  fc.tuple(fc.double({ min: -180, max: 180, noNaN: true }), fc.double({ min: -90, max: 90, noNaN: true })),
  fc.tuple(fc.integer({ min: -4, max: 4 }), fc.integer({ min: -4, max: 4 })),
  fc.tuple(fc.constantFrom(-180, 180, 179.5, -179.5), fc.constantFrom(-90, 90, 89.5, 0, -60)),
  fc.tuple(fc.double({ min: -1e-7, max: 1e-7, noNaN: true }), fc.constantFrom(0, 1e-9, -5e-324)),
);
type Coordinates = [lng: number, lat: number];
const closed = (ring: Coordinates[]) => [...ring, ring[0] as Coordinates];

/** Rings that do not cross themselves, of many sizes, over the antimeridian and near to a pole too. */
const star = fc
  .record({
    center: coordinates,
    size: fc.constantFrom(1e-9, 1e-5, 0.1, 3, 40, 89),
    radii: fc.array(fc.double({ min: 0.3, max: 1, noNaN: true }), { minLength: 3, maxLength: 9 }),
    isClockwise: fc.boolean(),
  })
  .map(({ center: [lng, lat], size, radii, isClockwise }) => (part: number): Coordinates[] => {
    const ring = radii.map((radius, i): Coordinates => {
      const [angle, far] = [(2 * Math.PI * i) / radii.length, radius * size * part];
      const x = lng + far * Math.cos(angle);
      return [
        x > 180 ? x - 360 : x < -180 ? x + 360 : x,
        Math.max(-90, Math.min(90, lat + far * Math.sin(angle))),
      ];
    });
    return isClockwise ? ring.toReversed() : ring;
  });
const STRICT = { type: 'name', properties: { name: 'urn:x-mongodb:crs:strictwinding:EPSG:4326' } };
const area: fc.Arbitrary<Document> = fc.oneof(
  fc.tuple(coordinates, coordinates, coordinates).map(([a, b, c]) => polygon(a, b, c, a)),
  // Many of these touch or cross themselves, and are refused.
  fc.array(coordinates, { minLength: 3, maxLength: 6 }).map((ring) => polygon(...closed(ring))),
  star.map((ring) => polygon(...closed(ring(1)))),
  star.map((ring) => ({ type: 'Polygon', coordinates: [closed(ring(1)), closed(ring(0.25))] })),
  fc
    .array(star, { minLength: 1, maxLength: 3 })
    .map((stars) => ({ type: 'MultiPolygon', coordinates: stars.map((ring) => [closed(ring(1))]) })),
);
const large = star.map((ring): Document => ({ ...polygon(...closed(ring(1))), crs: STRICT }));
const line = fc.array(coordinates, { minLength: 2, maxLength: 4 });
const geometry: fc.Arbitrary<Document> = fc.oneof(
  coordinates.map((pair) => ({ type: 'Point', coordinates: pair })),
  line.map((pairs) => ({ type: 'LineString', coordinates: pairs })),
  line.map((pairs) => ({ type: 'MultiPoint', coordinates: pairs })),
  fc.tuple(line, line).map((lines) => ({ type: 'MultiLineString', coordinates: lines })),
  area,
);
const collection = fc
  .array(geometry, { minLength: 1, maxLength: 3 })
  .map((geometries) => ({ type: 'GeometryCollection', geometries }));
/** Locations as in documents: GeoJSON, pairs, documents of two numbers, and lists of these. */
const shape: fc.Arbitrary<unknown> = fc.oneof(
  geometry,
  collection,
  coordinates,
  coordinates.map(([lng, lat]) => ({ lng, lat })),
  fc.array(coordinates, { minLength: 1, maxLength: 3 }),
  fc.array(geometry, { minLength: 1, maxLength: 2 }),
);
const region: fc.Arbitrary<Document> = fc.oneof(
  fc
    .tuple(fc.constantFrom('$geoWithin', '$geoIntersects'), fc.oneof(area, large))
    .map(([name, each]) => ({ [name]: { $geometry: each } })),
  fc.oneof(geometry, collection).map((each) => ({ $geoIntersects: { $geometry: each } })),
  fc
    .tuple(coordinates, fc.constantFrom(0, 1e-9, 0.01, 0.5, 2, 3.2))
    .map((circle) => ({ $geoWithin: { $centerSphere: circle } })),
  fc.tuple(coordinates, coordinates).map((box) => ({ $geoWithin: { $box: box } })),
  fc.tuple(coordinates, fc.constantFrom(0, 1, 50)).map((circle) => ({ $geoWithin: { $center: circle } })),
  star.map((ring) => ({ $geoWithin: { $polygon: ring(1) } })),
);

/** Points of a region's first ring: its corners, and points between two of them. */
function edgePoints(regions: readonly Document[]): Coordinates[] {
  const geometries = regions.flatMap((each) => Object.values(each).map(({ $geometry }) => $geometry));
  const rings: Coordinates[][] = geometries.flatMap((each) =>
    each?.type === 'Polygon' ? [each.coordinates[0]] : [],
  );
  return rings.flatMap((ring) =>
    ring.flatMap(([x, y], i) => {
      const [nextX, nextY] = ring[(i + 1) % ring.length] as Coordinates;
      return [[x, y] as Coordinates, [(x + nextX) / 2, (y + nextY) / 2] as Coordinates];
    }),
  );
}

function haversine([lng1, lat1]: readonly number[], [lng2, lat2]: readonly number[]): number {
  const rad = (degrees: number | undefined) => ((degrees as number) * Math.PI) / 180;
  const [dLat, dLng] = [rad(lat2) - rad(lat1), rad(lng2) - rad(lng1)];
  const h = Math.sin(dLat / 2) ** 2 + Math.cos(rad(lat1)) * Math.cos(rad(lat2)) * Math.sin(dLng / 2) ** 2;
  return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(h)));
}

describe('over random locations', () => {
  test('an area lies within itself, and meets itself', (t) => {
    const documents = new TestDocuments(t);
    const degrees = fc.double({ min: -80, max: 80, noNaN: true });
    const corners = fc.tuple(degrees, degrees, fc.constantFrom(0.001, 0.1, 1, 5));
    const square = corners.map(([x, y, side]) =>
      polygon([x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]),
    );
    fc.assert(
      fc.property(square, (area) => {
        documents.run({ drop: 'a' });
        documents.insert('a', { _id: 1, area });
        for (const name of ['$geoWithin', '$geoIntersects'])
          assert.deepEqual(documents.ids('a', { area: { [name]: { $geometry: area } } }), [1], name);
      }),
      { numRuns: RUNS },
    );
  });

  test('an index finds what reading all of them finds', (t) => {
    const documents = new TestDocuments(t);
    fc.assert(
      fc.property(
        fc.array(shape, { minLength: 1, maxLength: 10 }),
        fc.array(region, { minLength: 1, maxLength: 4 }),
        (shapes, regions) => {
          for (const name of ['all', 'sphere', 'plane']) documents.run({ drop: name });
          indexed(documents, 'sphere', { key: { loc: '2dsphere' } });
          indexed(documents, 'plane', { key: { loc: '2d' } });
          const inPlane = new Set<unknown>();
          [...shapes, ...edgePoints(regions)].forEach((loc, _id) => {
            // An invalid shape, such as a ring that crosses itself, is in neither.
            const { writeErrors } = documents.ask({ insert: 'sphere', documents: [{ _id, loc }] });
            if (writeErrors) {
              assert.equal(writeErrors[0].code, 16755);
              return;
            }
            documents.insert('all', { _id, loc });
            if (!documents.ask({ insert: 'plane', documents: [{ _id, loc }] }).writeErrors) inPlane.add(_id);
          });
          for (const loc of regions) {
            const reply = documents.ask({ find: 'all', filter: { loc }, batchSize: 1000 });
            const others = ['sphere', 'plane'].map((name) =>
              documents.ask({ find: name, filter: { loc }, sort: { _id: 1 }, batchSize: 1000 }),
            );
            if (reply.ok === 0) {
              assert.deepEqual(
                [reply, ...others].map(({ code }) => code),
                [2, 2, 2],
              );
              continue;
            }
            const expected = reply.cursor.firstBatch.map(({ _id }: Document) => _id);
            const [sphere, plane] = others.map(({ cursor }) =>
              cursor.firstBatch.map(({ _id }: Document) => _id),
            );
            assert.deepEqual(sphere, expected, JSON.stringify(loc));
            assert.deepEqual(
              plane,
              expected.filter((id: unknown) => inPlane.has(id)),
              JSON.stringify(loc),
            );
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  test('the nearest come first, by the distance of the haversine', (t) => {
    const documents = new TestDocuments(t);
    const distances = fc.constantFrom(undefined, 0, 1000, 1e6, 1e7);
    fc.assert(
      fc.property(
        fc.array(coordinates, { minLength: 1, maxLength: 30 }),
        coordinates,
        distances,
        (pairs, from, $maxDistance) => {
          documents.run({ drop: 'places' });
          indexed(documents, 'places', { key: { loc: '2dsphere' } });
          // More documents than one read returns, far away.
          documents.insert('places', ...pairs.map((loc, _id) => ({ _id, loc })));
          documents.insert(
            'places',
            ...Array.from({ length: 200 }, (_, i) => ({ _id: 1000 + i, loc: [0, 0], far: 1 })),
          );
          const near = {
            $geometry: point(from[0] as number, from[1] as number),
            ...($maxDistance === undefined ? {} : { $maxDistance }),
          };
          const found = documents.ids('places', { loc: { $near: near }, far: null }) as number[];
          const distanceOf = (id: number) => haversine(from, pairs[id] as number[]);
          const expected = pairs
            .map((_, id) => id)
            .filter((id) => distanceOf(id) <= ($maxDistance ?? 1e9) - 0.5);
          for (const id of expected) assert.ok(found.includes(id), `${id} of ${found}`);
          for (const id of found) assert.ok(distanceOf(id) <= ($maxDistance ?? 1e9) + 0.5);
          const measured = found.map(distanceOf);
          const isSorted = measured.every((each, i) => i === 0 || each >= (measured[i - 1] as number) - 0.5);
          assert.ok(isSorted, String(measured));
        },
      ),
      { numRuns: RUNS / 2 },
    );
  });

  test('a triangle holds what is left of its three sides', (t) => {
    const documents = new TestDocuments(t);
    const local = fc.tuple(
      fc.double({ min: -60, max: 60, noNaN: true }),
      fc.double({ min: -60, max: 60, noNaN: true }),
    );
    const vector = ([lng = 0, lat = 0]: readonly number[]) => {
      const [theta, phi] = [(lng * Math.PI) / 180, (lat * Math.PI) / 180];
      return [Math.cos(phi) * Math.cos(theta), Math.cos(phi) * Math.sin(theta), Math.sin(phi)];
    };
    const determinant = (a: readonly number[], b: readonly number[], c: readonly number[]) => {
      const [ax = 0, ay = 0, az = 0, bx = 0, by = 0, bz = 0, cx = 0, cy = 0, cz = 0] = [a, b, c].flatMap(
        vector,
      );
      return ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx);
    };
    fc.assert(
      fc.property(
        fc.tuple(local, local, local),
        fc.array(local, { minLength: 5, maxLength: 20 }),
        ([a, b, c], pairs) => {
          fc.pre(Math.abs(determinant(a, b, c)) > 1e-3);
          documents.run({ drop: 'places' });
          documents.insert('places', ...pairs.map((loc, _id) => ({ _id, loc })));
          const found = documents.ids('places', { loc: { $geoWithin: { $geometry: polygon(a, b, c, a) } } });
          const turn = Math.sign(determinant(a, b, c));
          pairs.forEach((p, id) => {
            const least = Math.min(
              ...[determinant(a, b, p), determinant(b, c, p), determinant(c, a, p)].map(
                (each) => turn * each,
              ),
            );
            if (Math.abs(least) > 1e-9)
              assert.equal(found.includes(id), least > 0, JSON.stringify([a, b, c, p]));
          });
        },
      ),
      { numRuns: RUNS },
    );
  });
});
