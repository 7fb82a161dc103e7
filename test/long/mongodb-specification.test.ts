/**
 * The public specification tests of MongoDB's drivers for reading and writing documents, on the built-in
 * engine. TEST_MONGODB_URL is a database of another server for the tests, which empty it.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_MONGODB_SPECIFICATION } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { type LegacyFile, runLegacyTest } from './mongodb/legacy-format.ts';
import { type Requirement, Server } from './mongodb/server.ts';
import { runUnifiedTest, type UnifiedFile, type UnifiedTest } from './mongodb/unified-format.ts';

const FOLDER = join(dirname(dirname(import.meta.dirname)), 'build/specifications/mongodb/crud');
const skip = existsSync(FOLDER) ? false : NO_MONGODB_SPECIFICATION;

/** Features that the engine lacks according to docs/databases/mongodb.md, and how a test requires them. */
const NOT_HERE: readonly { readonly sign: string; readonly reason: string }[] = [
  { sign: 'failPoint', reason: 'a server has fail points only when it was started for tests' },
];

function notHere(test: UnifiedTest): string | undefined {
  const text = JSON.stringify(test.operations);
  return NOT_HERE.find(({ sign }) => text.includes(`"${sign}"`))?.reason;
}

function versionsOf({ minServerVersion, maxServerVersion }: LegacyFile): Requirement {
  return { minServerVersion, maxServerVersion };
}

function filesIn(folder: string): string[] {
  return globSync(`${folder}/**/*.json`, { cwd: FOLDER }).sort();
}

function read<File>(file: string): File {
  return JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
}

describe("the specification tests of MongoDB's drivers", () => {
  const url = process.env.TEST_MONGODB_URL;
  let cloud: CloudProcess | null = null;
  let server: Server;

  async function newUrl(): Promise<string> {
    cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
    const user = await new Client(cloud.api).newUser();
    const made = await user.call('/api/databases', { json: { name: 'specification', engine: 'mongodb' } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return String(made.body.connection.uri);
  }

  before(async () => {
    if (skip !== false) return;
    server = await Server.connect(url ?? (await newUrl()));
  });
  after(async () => {
    await server?.db.dropDatabase();
    await server?.client.close();
    await cloud?.stop();
  });

  test('they are here', { skip }, () => {
    assert.ok(filesIn('legacy').length > 0 && filesIn('unified').length > 0);
  });

  for (const name of filesIn('legacy')) {
    const file = read<LegacyFile>(name);
    for (const each of file.tests) {
      test(`${name}: ${each.description}`, async (t) => {
        const reason = server.unmet([versionsOf(file)]);
        return reason === undefined ? runLegacyTest(server, file, each) : t.skip(reason);
      });
    }
  }

  for (const name of filesIn('unified')) {
    const file = read<UnifiedFile>(name);
    for (const each of file.tests) {
      test(`${name}: ${each.description}`, async (t) => {
        const reason =
          server.unmet(file.runOnRequirements) ??
          server.unmet(each.runOnRequirements) ??
          (url === undefined ? notHere(each) : undefined);
        return reason === undefined ? runUnifiedTest(server, file, each) : t.skip(reason);
      });
    }
  }
});
