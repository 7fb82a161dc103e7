/** npm programs that people run on MongoDB and SQLite databases, unchanged. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { NpmFolder } from './npm-folder.ts';

/** Packages that are installed for each. */
const PACKAGES = {
  parse: ['parse-server@9.10.0'],
  drizzle: ['drizzle-orm@0.45.4', 'drizzle-kit@0.31.11', '@libsql/client@0.18.0'],
  prisma: ['prisma@7.10.0', '@prisma/client@7.10.0', '@prisma/adapter-libsql@7.10.0'],
};

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
  user = await new Client(cloud.api).newUser();
});
after(() => cloud?.stop());

async function connectionOf(name: string, engine: string): Promise<{ uri: string; password: string }> {
  const { status, body } = await user.call('/api/databases', { json: { name, engine } });
  assert.equal(status, 201, JSON.stringify(body));
  return body.connection;
}

/** The environment of a program that uses libSQL: the address without the password, and the password. */
async function libsqlEnv(name: string): Promise<Record<string, string>> {
  const { uri, password } = await connectionOf(name, 'sqlite');
  return { URL: uri.replace(/\?.*/, ''), TOKEN: password };
}

const SERVER = `
import express from 'express';
import { ParseServer } from 'parse-server';
const [uri, port] = process.argv.slice(2);
const serverURL = 'http://127.0.0.1:' + port + '/parse';
const server = new ParseServer({ databaseURI: uri, appId: 'app', masterKey: 'master', serverURL, allowClientClassCreation: true });
await server.start();
express().use('/parse', server.app).listen(Number(port), '127.0.0.1');
`;

describe('parse-server on MongoDB', () => {
  const point = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
  let folder: NpmFolder;
  let program: ReturnType<NpmFolder['start']>;
  let base: string;
  before(async () => {
    folder = await NpmFolder.with(PACKAGES.parse, { 'server.mjs': SERVER });
    const port = String(await freePort());
    const { uri } = await connectionOf('parse', 'mongodb');
    program = folder.start(['server.mjs', uri, port], {});
    program.stdout.resume();
    program.stderr.resume();
    base = `http://127.0.0.1:${port}/parse`;
    await eventually('parse-server is up', () =>
      fetch(`${base}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  });
  after(() => {
    program?.kill('SIGKILL');
    folder?.remove();
  });

  async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const headers = {
      'X-Parse-Application-Id': 'app',
      'X-Parse-Master-Key': 'master',
      'Content-Type': 'application/json',
    };
    const answer = await fetch(base + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: answer.status, ...((await answer.json()) as object) };
  }
  const names = async (where: unknown, more = '') => {
    const found = await call(
      'GET',
      `/classes/Place?where=${encodeURIComponent(JSON.stringify(where))}${more}`,
    );
    return (found.results as { name: string }[] | undefined)?.map(({ name }) => name) ?? found;
  };

  test('knows users whatever the case of their names and addresses', async () => {
    const ada = { username: 'ada', password: 'secret', email: 'Ada@example.org' };
    assert.equal((await call('POST', '/users', ada)).status, 201);
    assert.equal(
      (await call('POST', '/users', { ...ada, username: 'ADA', email: 'x@example.org' })).code,
      202,
    );
    assert.equal(
      (await call('POST', '/users', { ...ada, username: 'eve', email: 'ada@EXAMPLE.org' })).code,
      203,
    );
    assert.equal((await call('POST', '/login', ada)).status, 200);
  });

  test('finds objects by value, text, place and pattern', async () => {
    for (const [name, at] of [
      ['a', 1],
      ['b', 2],
      ['c', 40],
    ] as const)
      await call('POST', '/classes/Place', { name, score: at, tags: ['x', name], at: point(at, at) });
    assert.deepEqual(await names({ score: { $gt: 1 } }, '&order=-score'), ['c', 'b']);
    assert.deepEqual(await names({ tags: { $all: ['x', 'b'] } }), ['b']);
    assert.deepEqual(await names({ name: { $regex: '^A', $options: 'i' } }), ['a']);
    assert.deepEqual(await names({ at: { $nearSphere: point(0, 0), $maxDistance: 0.1 } }), ['a', 'b']);
    const $polygon = [point(0, 0), point(0, 5), point(5, 5), point(5, 0)];
    assert.deepEqual(await names({ at: { $geoWithin: { $polygon } } }, '&order=name'), ['a', 'b']);
    assert.deepEqual(await names({ name: { $text: { $search: { $term: 'b' } } } }), ['b']);
  });

  test('changes, counts and removes them', async () => {
    const { objectId } = await call('POST', '/classes/Item', { score: 1 });
    const score = { __op: 'Increment', amount: 2 };
    await call('PUT', `/classes/Item/${objectId}`, { score, tags: { __op: 'AddUnique', objects: ['y'] } });
    const there = await call('GET', `/classes/Item/${objectId}`);
    assert.deepEqual([there.score, there.tags], [3, ['y']]);
    const pipeline = JSON.stringify([{ $group: { _id: null, total: { $sum: '$score' } } }]);
    const { results } = await call('GET', `/aggregate/Item?pipeline=${encodeURIComponent(pipeline)}`);
    assert.equal((results as { total: number }[])[0]?.total, 3);
    assert.equal((await call('DELETE', `/classes/Item/${objectId}`)).status, 200);
    assert.equal((await call('GET', `/classes/Item/${objectId}`)).status, 404);
  });
});

const DRIZZLE = {
  'schema.ts': `
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
const id = integer().primaryKey({ autoIncrement: true });
const authors = sqliteTable('authors', { id, name: text().notNull().unique() });
const authorId = integer('author_id').references(() => authors.id, { onDelete: 'cascade' });
const notes = sqliteTable('notes', { id, title: text().notNull(), authorId }, (t) => [index('by_title').on(t.title)]);
export { authors, notes };
`,
  'drizzle.config.ts': `
const dbCredentials = { url: process.env.URL, authToken: process.env.TOKEN };
export default { dialect: 'turso', schema: './schema.ts', out: './drizzle', dbCredentials };
`,
  'use.mjs': `
import { createClient } from '@libsql/client';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/libsql';
import { migrate } from 'drizzle-orm/libsql/migrator';
import { authors, notes } from './schema.ts';
const db = drizzle(createClient({ url: process.env.URL, authToken: process.env.TOKEN }));
await migrate(db, { migrationsFolder: './drizzle' });
await db.transaction(async (tx) => {
  const [{ id }] = await tx.insert(authors).values({ name: 'ada' }).returning({ id: authors.id });
  await tx.insert(notes).values([{ title: 'one', authorId: id }, { title: 'two', authorId: id }]);
});
await db.transaction(async (tx) => {
  await tx.insert(authors).values({ name: 'eve' });
  tx.rollback();
}).catch(() => {});
await db.update(notes).set({ title: sql\`upper(\${notes.title})\` }).where(eq(notes.title, 'two'));
const found = await db.select({ name: authors.name, title: notes.title }).from(notes)
  .innerJoin(authors, eq(notes.authorId, authors.id)).orderBy(notes.title);
await db.delete(authors);
console.log(JSON.stringify([found, await db.$count(authors), await db.$count(notes)]));
`,
};

test('Drizzle makes migrations, runs them, and finds nothing to change after', async (t) => {
  const folder = await NpmFolder.with(PACKAGES.drizzle, DRIZZLE);
  t.after(() => folder.remove());
  const env = await libsqlEnv('drizzle');
  const kit = 'node_modules/drizzle-kit/bin.cjs';
  assert.match(await folder.run([kit, 'generate'], env), /notes 3 columns 1 indexes 1 fks/);
  const found = ['TWO', 'one'].map((title) => ({ name: 'ada', title }));
  assert.deepEqual(JSON.parse(await folder.run(['use.mjs'], env)), [found, 0, 0]);
  assert.match(await folder.run([kit, 'push', '--force'], env), /No changes detected/);
  assert.match(await folder.run([kit, 'introspect'], env), /Your schema file is ready/);
});

const PRISMA = {
  'prisma/schema.prisma': `
generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "sqlite"
}
model Note {
  id    Int    @id @default(autoincrement())
  title String @unique
  tags  Tag[]
}
model Tag {
  id     Int    @id @default(autoincrement())
  name   String
  note   Note   @relation(fields: [noteId], references: [id], onDelete: Cascade)
  noteId Int
}
`,
  'prisma.config.ts': `
import { defineConfig } from 'prisma/config';
export default defineConfig({ schema: 'prisma/schema.prisma', datasource: { url: 'file:unused.db' } });
`,
  'use.ts': `
import { PrismaLibSql } from '@prisma/adapter-libsql';
import { PrismaClient } from './prisma/generated/client.ts';
const { URL: url = '', TOKEN: authToken = '' } = process.env;
const prisma = new PrismaClient({ adapter: new PrismaLibSql({ url, authToken }) });
const id = 'id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT';
await prisma.$executeRawUnsafe(\`CREATE TABLE Note (\${id}, title TEXT NOT NULL UNIQUE)\`);
const note = 'FOREIGN KEY (noteId) REFERENCES Note(id) ON DELETE CASCADE';
await prisma.$executeRawUnsafe(\`CREATE TABLE Tag (\${id}, name TEXT NOT NULL, noteId INTEGER NOT NULL, \${note})\`);
const tags = { create: [{ name: 'a' }, { name: 'b' }] };
await prisma.note.create({ data: { title: 'one', tags } });
await prisma.note.upsert({ where: { title: 'one' }, update: { title: 'uno' }, create: { title: 'x' } });
const [found] = await prisma.note.findMany({ include: { tags: { orderBy: { name: 'desc' } } } });
const twice = await prisma.note.create({ data: { title: 'uno' } }).catch(({ message }) => message);
await prisma.$transaction(async (tx) => {
  await tx.note.create({ data: { title: 'two' } });
  throw new Error('undo');
}).catch(() => {});
const notes = await prisma.note.count();
await prisma.note.delete({ where: { title: 'uno' } });
const names = found.tags.map(({ name }) => name);
console.log(JSON.stringify({ title: found.title, names, isTwice: /UNIQUE/.test(twice), notes, tags: await prisma.tag.count() }));
await prisma.$disconnect();
`,
};

/** Its engine for migrations is not an npm package, so tables are created by hand here. */
test("Prisma's client reads, writes and rolls back over libSQL", async (t) => {
  const folder = await NpmFolder.with(PACKAGES.prisma, PRISMA);
  t.after(() => folder.remove());
  const env = { ...(await libsqlEnv('prisma')), PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  await folder.run(['node_modules/prisma/build/index.js', 'generate'], env);
  assert.deepEqual(JSON.parse(await folder.run(['use.ts'], env)), {
    title: 'uno',
    names: ['b', 'a'],
    isTwice: true,
    notes: 1,
    tags: 0,
  });
});
