import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Decimal128, type Document, Double, Long } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

/** The schema of the manual's "Specify JSON Schema Validation". */
const STUDENTS = {
  $jsonSchema: {
    bsonType: 'object',
    title: 'Student Object Validation',
    required: ['address', 'major', 'name', 'year'],
    properties: {
      name: { bsonType: 'string', description: "'name' must be a string and is required" },
      year: { bsonType: 'int', minimum: 2017, maximum: 3017, description: 'must be an integer' },
      gpa: { bsonType: ['double'], description: "'gpa' must be a double if the field exists" },
    },
  },
};

describe('a validator', () => {
  test('refuses what breaks its schema, and says which rule, as the manual shows', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ create: 'students', validator: STUDENTS });
    const alice = { name: 'Alice', year: 2019, major: 'History', address: { city: 'NYC' } };
    const { writeErrors } = documents.ask({
      insert: 'students',
      documents: [{ _id: 1, ...alice, gpa: Long.fromNumber(3) }],
    });
    assert.equal(writeErrors[0].code, 121);
    assert.equal(writeErrors[0].errmsg, 'Document failed validation');
    assert.deepEqual(writeErrors[0].errInfo, {
      failingDocumentId: 1,
      details: {
        operatorName: '$jsonSchema',
        schemaRulesNotSatisfied: [
          {
            operatorName: 'properties',
            propertiesNotSatisfied: [
              {
                propertyName: 'gpa',
                description: "'gpa' must be a double if the field exists",
                details: [
                  {
                    operatorName: 'bsonType',
                    specifiedAs: { bsonType: ['double'] },
                    reason: 'type did not match',
                    consideredValue: 3,
                    consideredType: 'long',
                  },
                ],
              },
            ],
          },
        ],
      },
    });
    documents.insert('students', { _id: 1, ...alice, gpa: new Double(3) });
    assert.equal(
      documents.codeOf({ update: 'students', updates: [{ q: { _id: 1 }, u: { $set: { year: 20 } } }] }),
      121,
    );
    assert.equal(
      documents.codeOf({ findAndModify: 'students', query: { _id: 1 }, update: { $unset: { name: 1 } } }),
      121,
    );
    documents.run({
      insert: 'students',
      documents: [{ _id: 2, name: 5 }],
      bypassDocumentValidation: true,
    });
    assert.deepEqual(documents.ids('students', STUDENTS), [1]);
    assert.deepEqual(documents.ids('students', { $nor: [STUDENTS] }), [2]);
  });

  test('of query operators refuses too, at its level and with its action', (t) => {
    const documents = new TestDocuments(t);
    const validator = { $or: [{ phone: { $type: 'string' } }, { email: { $regex: '@mongodb\\.com$' } }] };
    documents.run({ create: 'contacts', validator });
    const refused = documents.ask({ insert: 'contacts', documents: [{ _id: 1, phone: 5 }] });
    assert.equal(refused.writeErrors[0].code, 121);
    assert.equal(refused.writeErrors[0].errInfo.details.operatorName, '$or');
    documents.insert('contacts', { _id: 2, email: 'ada@mongodb.com' });
    documents.run({ insert: 'contacts', documents: [{ _id: 3, n: 1 }], bypassDocumentValidation: true });
    const touch = (_id: number, u: Document) =>
      documents.codeOf({ update: 'contacts', updates: [{ q: { _id }, u }] });
    assert.equal(touch(3, { $set: { n: 2 } }), 121);
    documents.run({ collMod: 'contacts', validationLevel: 'moderate' });
    assert.equal(touch(3, { $set: { n: 2 } }), undefined);
    assert.equal(touch(2, { $unset: { email: 1 } }), 121);
    assert.equal(documents.codeOf({ insert: 'contacts', documents: [{ _id: 4 }] }), 121);
    documents.run({ collMod: 'contacts', validationAction: 'warn' });
    documents.insert('contacts', { _id: 4 });
    documents.run({ collMod: 'contacts', validationAction: 'error', validationLevel: 'off' });
    documents.insert('contacts', { _id: 5 });
    documents.database.close();
    documents.open();
    const [listed] = documents.run({ listCollections: 1 }).cursor.firstBatch;
    assert.deepEqual(listed.options, { validator, validationLevel: 'off', validationAction: 'error' });
    documents.run({ collMod: 'contacts', validationLevel: 'strict' });
    assert.equal(documents.codeOf({ insert: 'contacts', documents: [{ _id: 6 }] }), 121);
    documents.run({ collMod: 'contacts', validator: {} });
    documents.insert('contacts', { _id: 6 });
  });

  test('that cannot be one is refused when it is made', (t) => {
    const documents = new TestDocuments(t);
    const codeOf = (validator: unknown, more: Document = {}) =>
      documents.codeOf({ create: 'c', validator, ...more });
    assert.equal(codeOf(5), 14);
    assert.equal(codeOf({ $where: '1' }), 224);
    assert.equal(codeOf({ a: { $near: [0, 0] } }), 224);
    assert.equal(codeOf({ $jsonSchema: { bogus: 1 } }), 9);
    assert.equal(codeOf({ $jsonSchema: { properties: { a: { $ref: 'x' } } } }), 9);
    assert.equal(codeOf({ $jsonSchema: { type: 'integer' } }), 9);
    assert.equal(codeOf({ $jsonSchema: { bsonType: 'blob' } }), 2);
    assert.equal(codeOf({ $jsonSchema: { pattern: '(' } }), 51091);
    assert.equal(codeOf({}, { validationLevel: 'hard' }), 2);
    assert.equal(documents.codeOf({ collMod: 'c', validator: {} }), 26);
    documents.run({ create: 'c' });
    assert.equal(documents.codeOf({ collMod: 'c', timeseries: {} }), 72);
  });
});

test('collMod changes when an index expires, and hides it from queries', (t) => {
  const documents = new TestDocuments(t);
  documents.run({
    createIndexes: 'log',
    indexes: [{ key: { at: 1 }, name: 'at', expireAfterSeconds: 10 }],
  });
  documents.insert('log', { _id: 1, at: new Date(0) }, { _id: 2, at: 5 });
  const planOf = () => documents.sourceOf({ find: 'log', filter: { at: 5 } });
  assert.equal(planOf().indexName, 'at');
  assert.deepEqual(documents.run({ collMod: 'log', index: { name: 'at', hidden: true } }), {
    hidden_old: false,
    hidden_new: true,
    ok: 1,
  });
  assert.equal(planOf().stage, 'COLLSCAN');
  assert.deepEqual(documents.ids('log', { at: 5 }), [2]);
  assert.equal(documents.run({ listIndexes: 'log' }).cursor.firstBatch[1].hidden, true);
  documents.run({ collMod: 'log', index: { keyPattern: { at: 1 }, hidden: false } });
  assert.equal(planOf().indexName, 'at');
  assert.deepEqual(
    documents.run({ collMod: 'log', index: { keyPattern: { at: 1 }, expireAfterSeconds: 99 } }),
    { expireAfterSeconds_old: 10, expireAfterSeconds_new: 99, ok: 1 },
  );
  assert.equal(documents.codeOf({ collMod: 'log', index: { name: 'none', hidden: true } }), 27);
  assert.equal(documents.codeOf({ collMod: 'log', index: { name: '_id_', hidden: true } }), 2);
  assert.equal(documents.codeOf({ collMod: 'log', index: { name: 'at' } }), 72);
});

/** A schema, values that match it, and values that do not. */
const SCHEMAS: readonly (readonly [Document, readonly unknown[], readonly unknown[]])[] = [
  [{ bsonType: 'number' }, [1, 1.5, Long.fromNumber(1), Decimal128.fromString('1')], ['1', null]],
  [{ type: ['string', 'boolean'] }, ['a', true], [1, null, {}]],
  [{ enum: [1, 'a', null] }, [1, Long.fromNumber(1), 'a', null], [2, 'A']],
  [{ minimum: 3, maximum: 5 }, [3, 5, new Double(3), 'x'], [2, 6, Decimal128.fromString('5.1')]],
  [{ minimum: 3, exclusiveMinimum: true }, [3.1], [3, 2]],
  [{ maximum: 3, exclusiveMaximum: true }, [2.9], [3]],
  [{ multipleOf: 3 }, [0, 9, -3, 'x'], [1, 10]],
  [
    { multipleOf: Decimal128.fromString('0.1') },
    [Decimal128.fromString('0.3')],
    [Decimal128.fromString('0.25')],
  ],
  [{ minLength: 2, maxLength: 3 }, ['ab', '😀😀', 5], ['a', 'abcd']],
  [{ pattern: '^a+$' }, ['aa', 1], ['b', 'ab']],
  [{ minItems: 1, maxItems: 2 }, [[1], [1, 2], 'x'], [[], [1, 2, 3]]],
  [
    { uniqueItems: true },
    [
      [1, 2],
      [{ a: 1 }, { a: 2 }],
    ],
    [
      [1, new Double(1)],
      [{ a: 1 }, { a: 1 }],
    ],
  ],
  [{ items: { bsonType: 'int' } }, [[], [1, 2]], [[1, 'a']]],
  [{ items: [{ bsonType: 'int' }], additionalItems: false }, [[1], []], [['a'], [1, 2]]],
  [{ items: [{}], additionalItems: { bsonType: 'int' } }, [['a', 1]], [['a', 'b']]],
  [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }, 'x'], [{}, { a: 1, b: 1, c: 1 }]],
  [{ required: ['a'] }, [{ a: null }, 'x'], [{}, { b: 1 }]],
  [{ properties: { a: { bsonType: 'int' } } }, [{}, { a: 1 }, { b: 'x' }], [{ a: 'x' }]],
  [{ patternProperties: { '^n': { bsonType: 'int' } } }, [{ n1: 1, x: 'x' }], [{ n1: 'x' }]],
  [
    { properties: { a: {} }, patternProperties: { '^n': {} }, additionalProperties: false },
    [{ a: 1, n2: 2 }],
    [{ b: 1 }],
  ],
  [{ additionalProperties: { bsonType: 'int' } }, [{ a: 1 }], [{ a: 'x' }]],
  [
    { dependencies: { a: ['b'], c: { required: ['d'] } } },
    [{ a: 1, b: 1 }, { c: 1, d: 1 }, {}],
    [{ a: 1 }, { c: 1 }],
  ],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
  [{ anyOf: [{ bsonType: 'int' }, { minLength: 2 }] }, [1, 'ab'], ['a']],
  [{ oneOf: [{ minimum: 1 }, { maximum: 2 }] }, [0, 3], [1, 2]],
  [{ not: { bsonType: 'int' } }, ['a'], [1]],
  [{ title: 'x', description: 'y' }, [1, 'a', null], []],
];

test('each keyword of $jsonSchema is kept by what the manual says', (t) => {
  const documents = new TestDocuments(t);
  for (const [schema, kept, broken] of SCHEMAS) {
    documents.run({ drop: 'all' });
    const filter = { $jsonSchema: { properties: { v: schema } } };
    documents.insert('all', ...[...kept, ...broken].map((v, _id) => ({ _id, v })));
    const found = documents.ids('all', filter);
    assert.deepEqual(found, [...kept.keys()], JSON.stringify(schema));
    documents.run({ create: 'checked', validator: filter });
    for (const v of broken) {
      const { writeErrors } = documents.ask({ insert: 'checked', documents: [{ v }] });
      assert.equal(writeErrors?.[0].code, 121, JSON.stringify(schema));
      assert.ok(writeErrors[0].errInfo.details.schemaRulesNotSatisfied.length > 0);
    }
    documents.run({ drop: 'checked' });
  }
});
