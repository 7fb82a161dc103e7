/** Runs a test in MongoDB's unified format: the driver's answer, its sent commands, and the stored data. */
import assert from 'node:assert/strict';
import { EJSON } from 'bson';
import {
  Collection,
  type CommandStartedEvent,
  Db,
  type Document,
  MongoClient,
  type MongoClientOptions,
} from 'mongodb';
import { assertMatches, assertSame } from './matching.ts';
import { isOfServer, type Operation, perform } from './operations.ts';
import type { Requirement, Server } from './server.ts';

interface Stored {
  readonly collectionName: string;
  readonly databaseName: string;
  readonly documents: readonly Document[];
}

interface ExpectedError {
  readonly isError?: true;
  readonly isClientError?: boolean;
  readonly errorContains?: string;
  readonly errorCode?: number;
}

interface UnifiedOperation extends Operation {
  readonly object: string;
  readonly expectResult?: unknown;
  readonly expectError?: ExpectedError;
}

interface ExpectedEvents {
  readonly client: string;
  readonly events: readonly { readonly commandStartedEvent: Document }[];
}

export interface UnifiedTest {
  readonly description: string;
  readonly runOnRequirements?: readonly Requirement[];
  readonly operations: readonly UnifiedOperation[];
  readonly expectEvents?: readonly ExpectedEvents[];
  readonly outcome?: readonly Stored[];
}

export interface UnifiedFile {
  readonly schemaVersion: string;
  readonly runOnRequirements?: readonly Requirement[];
  readonly createEntities: readonly Readonly<Record<string, Document>>[];
  readonly initialData?: readonly Stored[];
  readonly tests: readonly UnifiedTest[];
}

/** The connection's own commands, which no test counts. */
const OF_CONNECTION = ['hello', 'ismaster', 'saslStart', 'saslContinue', 'endSessions'];
const ERRORS = ['isError', 'isClientError', 'errorContains', 'errorCode'];

export async function runUnifiedTest(server: Server, file: UnifiedFile, test: UnifiedTest): Promise<void> {
  await server.db.dropDatabase();
  for (const { collectionName, documents } of file.initialData ?? []) {
    await server.db.createCollection(collectionName);
    if (documents.length > 0) await server.db.collection(collectionName).insertMany([...documents]);
  }
  await using entities = await Entities.create(server, file);
  for (const operation of test.operations) await check(entities.target(operation.object), operation);
  for (const { client, events } of test.expectEvents ?? []) entities.checkEvents(client, events);
  await entities.settle();
  for (const { collectionName, documents } of test.outcome ?? []) {
    const found = await server.db.collection(collectionName).find().sort({ _id: 1 }).toArray();
    assertSame(documents, found, collectionName);
  }
}

async function check(target: Collection | Db, operation: UnifiedOperation): Promise<void> {
  const { name, expectError, expectResult } = operation;
  const tried = perform(target, operation);
  if (expectError === undefined) {
    const answer = await tried;
    if (expectResult !== undefined) assertMatches(expectResult, answer, name);
    return;
  }
  const error = await tried.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error, `${name} is refused`);
  checkError(expectError, error);
}

function checkError(expected: ExpectedError, error: Error): void {
  const unknown = Object.keys(expected).filter((name) => !ERRORS.includes(name));
  assert.deepEqual(unknown, [], 'the runner knows what is expected of an error');
  const { isClientError, errorContains, errorCode } = expected;
  if (isClientError !== undefined) assert.equal(isOfServer(error), !isClientError, String(error));
  if (errorCode !== undefined) assert.equal(isOfServer(error) && error.code, errorCode, String(error));
  const contained = (errorContains ?? '').toLowerCase();
  assert.ok(error.message.toLowerCase().includes(contained), `${error.message}: lacks ${errorContains}`);
}

/** Entities that a test file names: clients, their databases and collections. Closes the clients. */
class Entities implements AsyncDisposable {
  readonly #server: Server;
  readonly #byName = new Map<string, MongoClient | Db | Collection>();
  readonly #events = new Map<string, Document[]>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async create(server: Server, { createEntities }: UnifiedFile): Promise<Entities> {
    const entities = new Entities(server);
    for (const entity of createEntities) await entities.#add(entity);
    return entities;
  }

  target(name: string): Collection | Db {
    const entity = this.#byName.get(name);
    assert.ok(entity instanceof Collection || entity instanceof Db, `${name} is one of the test's entities`);
    return entity;
  }

  checkEvents(client: string, expected: ExpectedEvents['events']): void {
    const sent = this.#events.get(client) ?? [];
    const names = sent.map(({ commandName }) => commandName);
    const wanted = expected.map(({ commandStartedEvent }) => commandStartedEvent);
    assert.equal(sent.length, wanted.length, `as many commands as expected were sent: ${names}`);
    for (const [at, { command = {}, commandName, databaseName }] of wanted.entries()) {
      if (commandName !== undefined) assert.equal(sent[at]?.commandName, commandName);
      if (databaseName !== undefined) assert.equal(sent[at]?.databaseName, this.#realName(databaseName));
      assertMatches(command, sent[at]?.command, 'command');
    }
  }

  /** Waits for unacknowledged writes: a connection executes one command after the other. */
  async settle(): Promise<void> {
    for (const client of this.#clients()) await client.db().command({ ping: 1 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients()) await client.close();
  }

  #clients(): MongoClient[] {
    return [...this.#byName.values()].filter((entity) => entity instanceof MongoClient);
  }

  /** A single database replaces every other one. */
  #realName(name: string): string {
    return name === 'admin' ? name : this.#server.db.databaseName;
  }

  async #add({ client, database, collection, ...other }: Readonly<Record<string, Document>>): Promise<void> {
    assert.deepEqual(Object.keys(other), [], 'the runner knows every kind of entity');
    if (client) this.#byName.set(client.id, await this.#connect(client.id, client.uriOptions));
    if (database) {
      const of = this.#byName.get(database.client);
      assert.ok(of instanceof MongoClient);
      this.#byName.set(database.id, of.db(this.#realName(database.databaseName), database.databaseOptions));
    }
    if (collection) {
      const of = this.#byName.get(collection.database);
      assert.ok(of instanceof Db);
      const made = of.collection(collection.collectionName, collection.collectionOptions);
      this.#byName.set(collection.id, made);
    }
  }

  async #connect(id: string, options: MongoClientOptions = {}): Promise<MongoClient> {
    const own: MongoClientOptions = { monitorCommands: true, maxPoolSize: 1 };
    const client = new MongoClient(this.#server.url, Object.assign(own, options));
    const events: Document[] = [];
    this.#events.set(id, events);
    client.on('commandStarted', ({ command, commandName, databaseName }: CommandStartedEvent) => {
      if (!OF_CONNECTION.includes(commandName))
        events.push({ command: EJSON.serialize(command), commandName, databaseName });
    });
    return client.connect();
  }
}
