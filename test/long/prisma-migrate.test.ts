/**
 * Prisma's `migrate dev` on PostgreSQL, with its shadow database, with the WebAssembly engine in the package
 * of version 6, which it uses with an adapter. Version 7 only uses a program, which npm does not have; on
 * MariaDB the engine of version 6.19.3 ends with "unreachable" before it has created anything.
 */
import assert from 'node:assert/strict';
import { globSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { NpmFolder } from './npm-folder.ts';

const PACKAGES = ['prisma@6.19.3', '@prisma/client@6.19.3', '@prisma/adapter-pg@7.10.0'];
const CLI = 'node_modules/prisma/build/index.js';
/** It requires a terminal. */
const TERMINAL =
  'data:text/javascript,process.stdin.isTTY=process.stdout.isTTY=true;process.stdout.columns=80';
/** Engines that are programs are not used; they would be downloaded. */
const NO_PROGRAMS = {
  PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
  PRISMA_QUERY_ENGINE_LIBRARY: process.execPath,
};

/**
 * The adapter refuses the types `name` and `"char"` of the catalogue, which are texts, and drops its shadow
 * database before its idle sessions there have ended.
 */
const ADAPTER = `
import { PrismaPg } from '@prisma/adapter-pg';
import Result from 'pg/lib/result.js';
const { addFields } = Result.prototype;
const asText = (field) => Object.assign(field, [18, 19].includes(field.dataTypeID) && { dataTypeID: 25 });
Result.prototype.addFields = function (fields) {
  return addFields.call(this, fields.map(asText));
};
const { hostname: host, port, username: user, password, pathname } = new URL(process.env.URL);
const connection = { host, port: Number(port), user, password, database: pathname.slice(1) };
const newAdapter = () => new PrismaPg({ ...connection, idleTimeoutMillis: 100 });
export { newAdapter };
`;
const CONFIG = `
import { defineConfig } from 'prisma/config';
import { newAdapter } from './adapter.mjs';
export default defineConfig({
  schema: 'prisma/schema.prisma',
  experimental: { adapter: true },
  engine: 'js',
  adapter: async () => newAdapter(),
});
`;
const schemaOf = (more: string) => `
generator client {
  provider   = "prisma-client"
  output     = "./generated"
  engineType = "client"
}
datasource db {
  provider = "postgresql"
  url      = env("URL")
}
enum Kind {
  GREEN
  BLACK
}
model Author {
  id    Int    @id @default(autoincrement())
  name  String @unique
  notes Note[]
}
model Note {
  id       Int      @id @default(autoincrement())
  title    String
  kind     Kind     @default(GREEN)
  data     Json?
  tags     String[]
  price    Decimal  @default(1.5)
  madeAt   DateTime @default(now())
  author   Author   @relation(fields: [authorId], references: [id], onDelete: Cascade)
  authorId Int
  ${more}
  @@index([title, kind])
}
`;
const USE = `
import { newAdapter } from './adapter.mjs';
import { PrismaClient } from './prisma/generated/client.ts';
const prisma = new PrismaClient({ adapter: newAdapter() });
const notes = { create: [{ title: 'one', data: { a: [1] }, tags: ['x'] }, { title: 'two', kind: 'BLACK' }] };
await prisma.author.create({ data: { name: 'ada', notes } });
await prisma.$transaction(async (tx) => {
  await tx.author.create({ data: { name: 'eve' } });
  throw new Error('undo');
}).catch(() => {});
const twice = await prisma.author.create({ data: { name: 'ada' } }).catch(({ code }) => code);
const [found] = await prisma.author.findMany({ include: { notes: { orderBy: { title: 'desc' } } } });
const black = await prisma.note.count({ where: { kind: 'BLACK', author: { name: 'ada' } } });
const { data, tags } = found.notes[1];
await prisma.author.delete({ where: { name: 'ada' } });
const titles = found.notes.map(({ title }) => title);
console.log(JSON.stringify([titles, data, tags, black, twice, await prisma.note.count()]));
await prisma.$disconnect();
`;

const skip = globSync('build/programs/postgresql-*/usr').length > 0 ? false : NO_POSTGRESQL;

describe("Prisma's migrate dev", { skip }, () => {
  let cloud: CloudProcess;
  let user: Client;
  let folder: NpmFolder;
  before(async () => {
    folder = await NpmFolder.with(PACKAGES, {
      'prisma/schema.prisma': schemaOf(''),
      'prisma.config.ts': CONFIG,
      'adapter.mjs': ADAPTER,
      'use.ts': USE,
    });
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    folder?.remove();
    await cloud?.stop();
  });

  test('makes, checks and runs migrations, and drops its shadow', async () => {
    const { status, body } = await user.call('/api/databases', {
      json: { name: 'prisma', engine: 'postgresql' },
    });
    assert.equal(status, 201, JSON.stringify(body));
    const env = { URL: body.connection.uri, CHECKPOINT_DISABLE: '1', ...NO_PROGRAMS };
    const prisma = (...words: string[]) => folder.run(['--import', TERMINAL, CLI, ...words], env);
    const migrations = () =>
      readdirSync(join(folder.path, 'prisma/migrations')).map((name) => name.replace(/^\d+_/, ''));
    await prisma('migrate', 'dev', '--name', 'first');
    writeFileSync(join(folder.path, 'prisma/schema.prisma'), schemaOf('more String?'));
    await prisma('migrate', 'dev', '--name', 'second');
    assert.deepEqual(migrations(), ['first', 'second', 'migration_lock.toml']);
    assert.match(await prisma('migrate', 'dev'), /Already in sync/);
    assert.match(await prisma('migrate', 'status'), /Database schema is up to date/);
    assert.deepEqual((await user.call(`/api/databases/${body.database_id}/test-databases`)).body, []);
    await prisma('generate');
    const used = JSON.parse(await folder.run(['use.ts'], env));
    assert.deepEqual(used, [['two', 'one'], { a: [1] }, ['x'], 1, 'P2002', 0]);
    await prisma('migrate', 'reset', '--force', '--skip-seed');
    assert.match(await prisma('migrate', 'status'), /Database schema is up to date/);
  });
});
