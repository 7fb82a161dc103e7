/**
 * Measures the trips of typical requests: which files of the server run, and how many functions of each.
 *
 *   node scripts/trips.ts            a table of all trips
 *   node scripts/trips.ts upload     also the functions of the trips with this in their name
 *
 * A function counts when it ran in each of three runs of a journey, after a first one that filled the caches,
 * and does not run all the time. On a busy host a run has more: waits and retries.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Document, MongoClient } from 'mongodb';
import { newS3 } from '../test/acceptance/s3-kit.ts';
import { CheckedClient } from '../test/harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../test/harness/cloud-process.ts';
import type { RanFunction } from './count-functions.ts';

/** File from the root of the project → the functions of it that ran. */
type Ran = ReadonlyMap<string, ReadonlySet<string>>;

export interface Trip {
  readonly name: string;
  readonly ran: Ran;
  /** Includes functions that ran in idle times, or in one run of the journey only. */
  readonly ranAtAll: Ran;
}

interface Journey {
  readonly name: string;
  readonly run: () => Promise<unknown>;
  /** Not measured. */
  readonly before?: () => Promise<unknown>;
  readonly after?: () => Promise<unknown>;
}

interface Journeys {
  readonly all: readonly Journey[];
  /** Leaves work for a job that runs every few seconds and commits it. */
  readonly leaveWork: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
}

/** Longer than the periods of frequent jobs; twice this is shorter than those of the others. */
const IDLE_MS = 16_000;
/** Measured runs of each journey. */
const RUNS = 3;
/** Time for work that a request leaves for after its response. */
const SETTLE_MS = 300;
const POST = { method: 'POST' };
const DELETE = { method: 'DELETE' };
const POINTS = '/api/disaster-recovery/points';

/**
 * Runs the journeys with these names, or all, against a new cloud. Resolves with the measurements of each.
 */
export async function measureTrips(names?: readonly string[]): Promise<Trip[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-trips-'));
  const socket = join(folder, 'socket');
  const counter = new URL('./count-functions.ts', import.meta.url).href;
  const command = [
    'env',
    `TRIPS_SOCKET=${socket}`,
    `NODE_OPTIONS=--import=${counter}`,
    // A trip counts source files.
    'CLOUDLET_FROM_SOURCE=1',
    'bin/cloudlet',
    'start',
  ];
  const cloud = await CloudProcess.start({ command });
  let end: Journeys['end'] | undefined;
  try {
    const made = await journeysOn(cloud);
    const { all } = made;
    end = made.end;
    const journeys = names === undefined ? all : all.filter(({ name }) => names.includes(name));
    const measured = async ({ run, before, after }: Journey) => {
      await before?.();
      await sleep(SETTLE_MS);
      await taken(socket);
      await run();
      await sleep(SETTLE_MS);
      const ran = await taken(socket);
      await after?.();
      return ran;
    };
    for (const journey of journeys) await measured(journey);
    const idle = await idleFunctions(socket, made.leaveWork);
    const trips: Trip[] = [];
    for (const journey of journeys) {
      const runs: Ran[] = [];
      while (runs.length < RUNS) runs.push(await measured(journey));
      const [first = idle, ...others] = runs;
      const each = (file: string, name: string) => others.every((run) => run.get(file)?.has(name) === true);
      const ran = filtered(first, (file, name) => each(file, name) && !idle.get(file)?.has(name));
      trips.push({ name: journey.name, ran, ranAtAll: joined([idle, ...runs]) });
    }
    return trips;
  } finally {
    await end?.();
    await cloud.stop();
    rmSync(folder, { recursive: true });
  }
}

/**
 * Functions that run in each of two idle times, so that a minutely job does not hide any. Each has
 * a commit of a job: otherwise chance decides whether a trip counts the files of commits.
 */
async function idleFunctions(socket: string, leaveWork: Journeys['leaveWork']): Promise<Ran> {
  const idleTime = async () => {
    await leaveWork();
    await sleep(SETTLE_MS);
    await taken(socket);
    await sleep(IDLE_MS);
    return await taken(socket);
  };
  const first = await idleTime();
  const second = await idleTime();
  return filtered(first, (file, each) => second.get(file)?.has(each));
}

async function taken(socket: string): Promise<Ran> {
  const ran = new Map<string, Set<string>>();
  const functions = (await json(createConnection(socket))) as RanFunction[];
  for (const [file, name] of functions) ran.set(file, (ran.get(file) ?? new Set()).add(name));
  return ran;
}

/**
 * The functions that ran in both measurements of a trip. `ranAtAll` has the functions of either measurement:
 * a file does not count as one with a single function if each measurement ran another function.
 */
export function common(trip: Trip, other: Trip): Trip {
  return {
    name: trip.name,
    ran: filtered(trip.ran, (file, name) => other.ran.get(file)?.has(name)),
    ranAtAll: joined([trip.ranAtAll, other.ranAtAll]),
  };
}

/** The functions that ran in any of `runs`. */
function joined(runs: readonly Ran[]): Ran {
  const all = new Map<string, Set<string>>();
  for (const [file, names] of runs.flatMap((run) => [...run])) {
    all.set(file, new Set([...(all.get(file) ?? []), ...names]));
  }
  return all;
}

/** Functions that `keep` accepts, without files that have none left. */
function filtered(ran: Ran, keep: (file: string, name: string) => boolean | undefined): Ran {
  const kept = [...ran].map(
    ([file, names]) => [file, new Set([...names].filter((name) => keep(file, name)))] as const,
  );
  return new Map(kept.filter(([, names]) => names.size > 0));
}

async function journeysOn(cloud: CloudProcess): Promise<Journeys> {
  const admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  const account = await admin.register();
  const user = admin.as(account.api_key);
  const credits = `/api/admin/accounts/${account.id}/credits`;
  const credit = () => admin.expect(200, credits, { json: { amount: 100, reason: 'trips' } });
  await credit();
  const documents = await documentJourney(user);
  const storage = await storageJourneys(user);
  const all = [
    ...storage.all,
    ...(await s3Journeys(cloud, user)),
    ...(await machineJourneys(user)),
    await databaseJourney(user),
    await queryJourney(user),
    documents.journey,
    ...(await recoveryJourneys(admin, user)),
    // Granted credits make all usage until then be charged.
    { name: 'charge', run: credit },
  ];
  return { all, leaveWork: storage.download, end: documents.end };
}

async function storageJourneys(user: CheckedClient) {
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  const send = async (size: number): Promise<string> => {
    const { status, body } = await user.upload('files', nameFor('file'), Buffer.alloc(size, 7));
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body.object_id;
  };
  const object = await send(2 ** 20);
  const download = () => user.download(object);
  const all: Journey[] = [
    { name: 'upload of 4 KiB', run: () => send(4096) },
    { name: 'upload of 1 MiB', run: () => send(2 ** 20) },
    { name: 'download of 1 MiB', run: download },
    { name: 'list of files', run: () => user.expect(200, '/api/buckets/files/files') },
  ];
  return { all, download };
}

async function s3Journeys(cloud: CloudProcess, user: CheckedClient): Promise<Journey[]> {
  const s3 = await newS3(cloud.data, user);
  await s3.ok('PUT', '/s3-files');
  const put = () => s3.ok('PUT', `/s3-files/${nameFor('file')}`, { body: Buffer.alloc(4096, 7) });
  await s3.ok('PUT', '/s3-files/read', { body: Buffer.alloc(4096, 7) });
  return [
    { name: 'S3 PUT of 4 KiB', run: put },
    { name: 'S3 GET of 4 KiB', run: () => s3.ok('GET', '/s3-files/read') },
    { name: 'S3 LIST', run: () => s3.ok('GET', '/s3-files', { query: 'list-type=2' }) },
  ];
}

async function machineJourneys(user: CheckedClient): Promise<Journey[]> {
  const create = async () => {
    const json = { name: nameFor('machine'), image: 'tiny', instance_type: 't2.micro' };
    return `/api/vms/${(await user.expect(201, '/api/vms', { json })).vm_id}`;
  };
  const vm = await create();
  const start = () => user.expect(200, `${vm}/start`, POST);
  const stop = () => user.expect(200, `${vm}/stop?force=true`, POST);
  return [
    { name: 'machine create', run: create },
    { name: 'machine start', run: start, after: stop },
    { name: 'machine stop', before: start, run: stop },
  ];
}

/** The account has a database already, so that its server runs. */
async function databaseJourney(user: CheckedClient): Promise<Journey> {
  let created = '';
  const run = async () => {
    const json = { name: nameFor('database'), engine: 'postgresql' };
    created = `/api/databases/${(await user.expect(201, '/api/databases', { json })).database_id}`;
  };
  await run();
  return { name: 'database create', run, after: () => user.expect(200, created, DELETE) };
}

/** A statement of a libSQL driver. */
async function queryJourney(user: CheckedClient): Promise<Journey> {
  const { connection } = await user.expect(201, '/api/databases', { json: { name: 'libsql' } });
  const { host, pathname } = new URL(connection.uri);
  const url = `http://${host}${pathname}`.replace(/\/*$/, '/v2/pipeline');
  const requests = [{ type: 'execute', stmt: { sql: 'SELECT 1' } }, { type: 'close' }];
  const headers = { authorization: `Bearer ${connection.password}` };
  const run = async () => {
    const response = await fetch(url, { ...POST, headers, body: JSON.stringify({ requests }) });
    if (!response.ok) throw new Error(await response.text());
    await response.text();
  };
  return { name: 'libSQL query', run };
}

/** A document that is stored and read over an open connection. */
async function documentJourney(user: CheckedClient) {
  const json = { name: 'documents', engine: 'mongodb' };
  const { connection } = await user.expect(201, '/api/databases', { json });
  const client = await new MongoClient(String(connection.uri)).connect();
  const documents = client.db().collection<Document & { _id: string }>('documents');
  const run = async () => {
    const _id = nameFor('document');
    await documents.insertOne({ _id, text: 'some' });
    await documents.findOne({ _id });
  };
  return { journey: { name: 'MongoDB document', run }, end: () => client.close() };
}

/** A point, and a deleted object that its owner restores from it. */
async function recoveryJourneys(admin: CheckedClient, user: CheckedClient): Promise<Journey[]> {
  await user.expect(201, '/api/buckets', { json: { name: 'lost' } });
  const { body } = await user.upload('lost', 'file', Buffer.alloc(4096, 7));
  const point = () => admin.expect(201, `${POINTS}?wait=60`, POST);
  const { point_id } = await point();
  const lose = (id: string) => user.expect(200, `/api/storage/${id}`, DELETE);
  let live = body.object_id;
  const before = async () => {
    await lose(live);
  };
  const run = () => user.expect(200, '/api/buckets/lost/restore', { json: { point_id } });
  const after = async () => {
    const [found] = await user.expect(200, '/api/buckets/lost/files');
    live = found.id;
  };
  return [
    { name: 'recovery point', run: point },
    { name: 'restore of a file', before, run, after },
  ];
}

let names = 0;

function nameFor(kind: string): string {
  return `${kind}-${++names}`;
}

/** The number of files and functions that ran, and of files with one function. */
export function figuresOf({ ran, ranAtAll }: Trip): { files: number; functions: number; single: number } {
  return {
    files: ran.size,
    functions: [...ran.values()].reduce((sum, { size }) => sum + size, 0),
    single: [...ran.keys()].filter((file) => ranAtAll.get(file)?.size === 1).length,
  };
}

if (import.meta.main) {
  const [wanted] = process.argv.slice(2);
  const trips = await measureTrips();
  for (const { name, ran } of trips.filter(({ name }) => wanted !== undefined && name.includes(wanted))) {
    console.log(`\n${name}`);
    for (const [file, functions] of [...ran].sort(([a], [b]) => a.localeCompare(b))) {
      console.log(`  ${file}: ${[...functions].map((each) => each.split('@', 1)[0]).join(', ')}`);
    }
  }
  console.log(`\n${'trip'.padEnd(20)} files  functions  files with one`);
  for (const trip of trips) {
    const { files, functions, single } = figuresOf(trip);
    const cells = [
      trip.name.padEnd(20),
      `${files}`.padStart(5),
      `${functions}`.padStart(10),
      `${single}`.padStart(15),
    ];
    console.log(cells.join(' '));
  }
}
