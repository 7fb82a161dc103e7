import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const point = (lng: number, lat: number) => ({ type: 'Point', coordinates: [lng, lat] });
const polygon = (...ring: number[][]) => ({ type: 'Polygon', coordinates: [ring] });

function indexed(documents: TestDocuments, name: string, index: Document): void {
  documents.run({ createIndexes: name, indexes: [{ name: 'geo', ...index }] });
}

function planOf(documents: TestDocuments, name: string, filter: Document): [string, string | undefined] {
  const { stage, indexName } = documents.sourceOf({ find: name, filter });
  return [stage, indexName];
}

/** The places of the manual's $near and $geoNear. */
const PLACES = [
  { _id: 1, name: 'Central Park', location: point(-73.97, 40.77), category: 'Parks' },
  { _id: 2, name: 'Sara D. Roosevelt Park', location: point(-73.9928, 40.7193), category: 'Parks' },
  { _id: 3, name: 'Polo Grounds', location: point(-73.9375, 40.8303), category: 'Stadiums' },
];

const PAIRS = [
  [0, 0],
  [3, 3],
  [6, 0],
  [3, 5],
  [100, 100],
  [-74, 40.74],
  [-74.1, 40.74],
];
const SQUARE = [
  [0, 0],
  [1, 1],
];
const FLAT: readonly (readonly [Document, readonly number[]])[] = [
  [
    {
      $box: [
        [0, 0],
        [100, 100],
      ],
    },
    [0, 1, 2, 3, 4],
  ],
  [
    {
      $box: [
        [3, 3],
        [6, 0],
      ],
    },
    [1, 2],
  ],
  [{ $center: [[-74, 40.74], 0.05] }, [5]],
  [{ $centerSphere: [[-74, 40.74], 10 / 3963.2] }, [5, 6]],
  [
    {
      $polygon: [
        [0, 0],
        [3, 6],
        [6, 0],
      ],
    },
    [0, 1, 2, 3],
  ],
];

describe('the examples of the manual', () => {
  test('$near and $nearSphere with an index of type 2dsphere', (t) => {
    const documents = new TestDocuments(t);
    indexed(documents, 'places', { key: { location: '2dsphere' } });
    documents.insert('places', ...PLACES);
    for (const name of ['$near', '$nearSphere']) {
      const near = { $geometry: point(-73.9667, 40.78), $minDistance: 1000, $maxDistance: 5000 };
      const filter = { location: { [name]: near } };
      assert.deepEqual(documents.ids('places', filter), [1]);
      assert.deepEqual(planOf(documents, 'places', filter), ['GEO_NEAR_2DSPHERE', 'geo']);
    }
    const all = { location: { $near: { $geometry: point(-73.9667, 40.78) } } };
    assert.deepEqual(documents.ids('places', all), [1, 3, 2]);
    assert.deepEqual(documents.ids('places', all, { sort: { _id: -1 }, limit: 2 }), [3, 2]);
    assert.deepEqual(documents.ids('places', all, { skip: 1, limit: 1 }), [3]);
    const radians = { $nearSphere: [-73.9667, 40.78], $minDistance: 0.0004 };
    assert.deepEqual(documents.ids('places', { location: radians }), [3, 2]);
    documents.run({
      update: 'places',
      updates: [{ q: { ...all, category: 'Parks' }, u: { $set: { nearest: true } } }],
    });
    assert.deepEqual(documents.ids('places', { nearest: true }), [1]);
  });

  test('$geoNear with a distance, a query and the location itself', (t) => {
    const documents = new TestDocuments(t);
    indexed(documents, 'places', { key: { location: '2dsphere' } });
    documents.insert('places', ...PLACES);
    const [found, ...more] = documents.aggregate('places', [
      {
        $geoNear: {
          near: point(-73.99279, 40.719296),
          distanceField: 'dist.calculated',
          maxDistance: 2,
          query: { category: 'Parks' },
          includeLocs: 'dist.location',
          spherical: true,
        },
      },
    ]);
    assert.equal(more.length, 0);
    assert.equal(found?.name, 'Sara D. Roosevelt Park');
    // The figure from the manual's page.
    assert.ok(Math.abs(found.dist.calculated - 0.9539931676365992) < 1e-6, String(found.dist.calculated));
    assert.deepEqual(found.dist.location, PLACES[1]?.location);
    const miles = {
      near: [-73.99279, 40.719296],
      spherical: true,
      distanceField: 'd',
      distanceMultiplier: 3963.2,
    };
    const all = documents.aggregate('places', [{ $geoNear: miles }, { $project: { d: 1 } }]);
    assert.deepEqual(
      all.map(({ _id }) => _id),
      [2, 1, 3],
    );
    assert.ok(all[1]?.d > 3.6 && all[1]?.d < 3.8);
  });

  test('$geoWithin and $geoIntersects with polygons', (t) => {
    const documents = new TestDocuments(t);
    const triangle = polygon([0, 0], [3, 6], [6, 1], [0, 0]);
    const shapes = [
      point(3, 2),
      point(3, 6.5),
      {
        type: 'LineString',
        coordinates: [
          [1, 1],
          [5, 1.5],
        ],
      },
      {
        type: 'LineString',
        coordinates: [
          [3, 2],
          [9, 9],
        ],
      },
      polygon([2, 2], [3, 3], [4, 2], [2, 2]),
      polygon([-9, -9], [-9, 9], [9, 9], [9, -9], [-9, -9]),
      polygon([20, 20], [21, 21], [22, 20], [20, 20]),
      {
        type: 'MultiPoint',
        coordinates: [
          [3, 2],
          [20, 20],
        ],
      },
      {
        type: 'GeometryCollection',
        geometries: [
          point(3, 2),
          {
            type: 'LineString',
            coordinates: [
              [2, 2],
              [4, 2],
            ],
          },
        ],
      },
      {
        type: 'MultiPolygon',
        coordinates: [triangle.coordinates, polygon([20, 0], [21, 1], [22, 0], [20, 0]).coordinates],
      },
    ];
    for (const index of [null, { key: { loc: '2dsphere' } }]) {
      documents.run({ drop: 'places' });
      if (index !== null) indexed(documents, 'places', index);
      documents.insert('places', ...shapes.map((loc, _id) => ({ _id, loc })));
      const within = { loc: { $geoWithin: { $geometry: triangle } } };
      const meets = { loc: { $geoIntersects: { $geometry: triangle } } };
      assert.deepEqual(documents.ids('places', within, { sort: { _id: 1 } }), [0, 2, 4, 8]);
      assert.deepEqual(documents.ids('places', meets, { sort: { _id: 1 } }), [0, 2, 3, 4, 5, 7, 8, 9]);
      const expected = index === null ? ['COLLSCAN', undefined] : ['IXSCAN', 'geo'];
      assert.deepEqual(planOf(documents, 'places', within), expected);
      assert.deepEqual(planOf(documents, 'places', meets), expected);
    }
  });

  test('a big polygon is what lies left of its ring, with the CRS for that', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('places', { _id: 1, loc: point(0, 0) }, { _id: 2, loc: point(-170, 0) });
    const ring = [
      [-100, 60],
      [-100, 0],
      [-100, -60],
      [100, -60],
      [100, 60],
      [-100, 60],
    ];
    const crs = { type: 'name', properties: { name: 'urn:x-mongodb:crs:strictwinding:EPSG:4326' } };
    const idsIn = (geometry: Document) =>
      documents.ids('places', { loc: { $geoWithin: { $geometry: geometry } } });
    assert.deepEqual(idsIn({ ...polygon(...ring), crs }), [1]);
    assert.deepEqual(idsIn(polygon(...ring)), [2]);
    assert.deepEqual(idsIn({ ...polygon(...ring.toReversed()), crs }), [2]);
  });

  for (const index of [null, { key: { loc: '2d' } }, { key: { loc: '2d', _id: 1 }, bits: 10 }])
    test(`shapes of the plane, and pairs near to one, with ${JSON.stringify(index)}`, (t) => {
      const documents = new TestDocuments(t);
      if (index !== null) indexed(documents, 'places', index);
      documents.insert('places', ...PAIRS.map((loc, _id) => ({ _id, loc })));
      const within = (shape: Document) => ({ loc: { $geoWithin: shape } });
      for (const [shape, expected] of FLAT)
        assert.deepEqual(documents.ids('places', within(shape), { sort: { _id: 1 } }), expected);
      assert.deepEqual(
        documents.ids('places', { loc: { $within: { $center: [{ x: 3, y: 4 }, 1] } } }),
        [1, 3],
      );
      if (index === null) return;
      assert.deepEqual(planOf(documents, 'places', within({ $box: SQUARE })), ['IXSCAN', 'geo']);
      const near = (operators: Document) => documents.ids('places', { loc: operators });
      assert.deepEqual(near({ $near: [0, 0] }).slice(0, 4), [0, 1, 3, 2]);
      assert.deepEqual(near({ $near: [0, 0], $maxDistance: 4.5 }), [0, 1]);
      assert.deepEqual(near({ $near: [0, 0, 4.5] }), [0, 1]);
      assert.deepEqual(near({ $nearSphere: [-74, 40], $maxDistance: 0.02 }), [5, 6]);
      assert.deepEqual(planOf(documents, 'places', { loc: { $near: [0, 0] } }), ['GEO_NEAR_2D', 'geo']);
    });
});

test('compound indexes, arrays of locations, and documents without one', (t) => {
  const documents = new TestDocuments(t);
  indexed(documents, 'shops', { key: { kind: 1, loc: '2dsphere', size: -1 } });
  documents.insert(
    'shops',
    { _id: 1, kind: 'tea', loc: [point(0, 0), point(50, 50)] },
    { _id: 2, kind: 'tea', loc: [10, 10] },
    { _id: 3, kind: 'ale', loc: { lng: 1, lat: 1 } },
    { _id: 4, kind: 'tea' },
    { _id: 5, kind: 'tea', loc: null },
  );
  const near = { $near: { $geometry: point(49, 49) } };
  assert.deepEqual(documents.ids('shops', { kind: 'tea', loc: near }), [1, 2]);
  assert.deepEqual(
    documents.ids('shops', { $and: [{ kind: { $in: ['tea', 'ale'] } }, { loc: near }] }),
    [1, 2, 3],
  );
  const world = { $geoWithin: { $centerSphere: [[0, 0], 3] } };
  assert.deepEqual(documents.ids('shops', { kind: 'tea', loc: world }, { sort: { _id: 1 } }), [1, 2]);
  assert.deepEqual(planOf(documents, 'shops', { kind: 'tea', loc: world }), ['IXSCAN', 'geo']);
  assert.equal(planOf(documents, 'shops', { loc: world })[0], 'COLLSCAN');
  documents.run({ update: 'shops', updates: [{ q: { _id: 1 }, u: { $set: { loc: [0, 0] } } }] });
  documents.run({ delete: 'shops', deletes: [{ q: { _id: 3 }, limit: 1 }] });
  assert.deepEqual(documents.ids('shops', { kind: { $in: ['tea', 'ale'] }, loc: near }), [2, 1]);
  documents.database.close();
  documents.open();
  assert.deepEqual(documents.ids('shops', { kind: 'tea', loc: near }), [2, 1]);
});

test('what is no location, and what cannot be asked, is refused by its code', (t) => {
  const documents = new TestDocuments(t);
  indexed(documents, 'sphere', { key: { loc: '2dsphere' } });
  indexed(documents, 'plane', { key: { loc: '2d' } });
  const inserted = (name: string, loc: unknown) => documents.codeOf({ insert: name, documents: [{ loc }] });
  assert.equal(inserted('sphere', 'here'), 16755);
  assert.equal(inserted('sphere', [200, 0]), 16755);
  assert.equal(inserted('sphere', polygon([0, 0], [1, 1], [0, 1])), 16755);
  assert.equal(inserted('sphere', polygon([0, 0], [2, 2], [0, 2], [2, 0], [0, 0])), 16755);
  assert.equal(inserted('sphere', { type: 'Circle', coordinates: [0, 0] }), 16755);
  assert.equal(inserted('plane', [200, 0]), 13027);
  assert.equal(inserted('plane', ['a', 'b']), 16804);
  const asked = (filter: Document, name = 'sphere') => documents.codeOf({ find: name, filter });
  assert.equal(asked({ other: { $near: { $geometry: point(0, 0) } } }), 291);
  assert.equal(asked({ loc: { $near: [0, 0] } }), 291);
  assert.equal(asked({ loc: { $near: { $geometry: point(0, 0) } } }, 'plane'), 291);
  assert.equal(asked({ $or: [{ loc: { $near: { $geometry: point(0, 0) } } }] }), 5626500);
  assert.equal(asked({ loc: { $geoWithin: { $geometry: point(0, 0) } } }), 2);
  assert.equal(
    asked({
      loc: {
        $geoIntersects: {
          $box: [
            [0, 0],
            [1, 1],
          ],
        },
      },
    }),
    2,
  );
  assert.equal(asked({ loc: { $geoWithin: { $sphere: 1 } } }), 2);
  assert.equal(asked({ loc: { $near: { $geometry: point(0, 0) }, $maxDistance: 5 } }), 2);
  assert.equal(asked({ loc: { $near: { $geometry: point(0, 99) } } }), 2);
  const stage = (...pipeline: Document[]) => documents.codeOf({ aggregate: 'sphere', pipeline, cursor: {} });
  assert.equal(stage({ $match: { loc: { $near: { $geometry: point(0, 0) } } } }), 5626500);
  assert.equal(stage({ $limit: 1 }, { $geoNear: { near: [0, 0], distanceField: 'd' } }), 40602);
  assert.equal(stage({ $geoNear: { near: [0, 0], distanceField: 'd' } }), 27);
  const index = (key: Document, more: Document = {}) =>
    documents.codeOf({ createIndexes: 'c', indexes: [{ key, name: 'i', ...more }] });
  assert.equal(index({ a: 1, loc: '2d' }), 16801);
  assert.equal(index({ a: '2d', b: '2dsphere' }), 67);
  assert.equal(index({ a: '2d' }, { bits: 40 }), 72);
});
