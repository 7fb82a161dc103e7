/** The part of `cloudlet doctor` that checks the PostgreSQL in CLOUDLET_METADATA_URL. */
import type { Config } from '../../config/config.ts';
import {
  LEAST_VERSION,
  type ServerFacts,
  serverFacts,
} from '../../drivers/metadata-postgresql/server-facts.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import type { Finding } from '../../platform/finding.ts';

/** Connections: one writer, one lock holder, four readers, two for snapshots. */
const CONNECTIONS = 8;
/** A node of a cluster has one more, for messages of other nodes. */
const NODE_CONNECTIONS = CONNECTIONS + 1;
/** Times in Cloudlet's log and the server's log should agree. */
const MOST_CLOCK_MS = 1000;
const SUBJECT = 'metadata';

/** No finding if the metadata are in the data directory. */
export async function checkMetadata(
  { metadataUrl: url, nodeUrl = '' }: Pick<Config, 'metadataUrl'> & Partial<Pick<Config, 'nodeUrl'>>,
  clock: Clock = systemClock,
): Promise<Finding[]> {
  if (url === '') return [];
  const { host, pathname } = new URL(url);
  const place = `PostgreSQL at ${host}${pathname}`;
  try {
    const needed = nodeUrl === '' ? CONNECTIONS : NODE_CONNECTIONS;
    return describe(place, await serverFacts(url, clock), needed);
  } catch (error) {
    const detail = `${place} is not usable: ${(error as Error).message}`;
    return [{ level: 'fail', subject: SUBJECT, detail, fix: 'start it, or correct CLOUDLET_METADATA_URL' }];
  }
}

function describe(place: string, facts: ServerFacts, needed: number): Finding[] {
  const found: Finding[] = [];
  const add = (level: 'warn' | 'fail', detail: string, fix: string) =>
    found.push({ level, subject: SUBJECT, detail, fix });
  if (facts.versionNumber < LEAST_VERSION * 10_000) {
    add('fail', `${place} is version ${facts.version}`, `use version ${LEAST_VERSION} or newer`);
  }
  if (facts.encoding !== 'UTF8') {
    add(
      'fail',
      `the database has the encoding ${facts.encoding}`,
      "create the database with ENCODING 'UTF8' TEMPLATE template0",
    );
  }
  if (facts.isStandby)
    add('fail', `${place} is a standby, which is read-only`, 'use the address of the primary');
  else if (!facts.mayCreate) {
    add('fail', 'the role cannot create tables', 'GRANT CREATE ON SCHEMA public, or make it the owner');
  }
  for (const [name, isOn] of Object.entries({ fsync: facts.fsync, full_page_writes: facts.fullPageWrites })) {
    if (!isOn) add('warn', `${name} is off: a crash can lose or damage everything`, `set ${name} = on`);
  }
  const isLocal = facts.synchronousCommit === 'local' && facts.synchronousStandbys !== '';
  if (facts.synchronousCommit === 'off' || isLocal) {
    const detail = `synchronous_commit is ${facts.synchronousCommit}: acknowledged writes can be lost`;
    add('warn', detail, 'set synchronous_commit = on');
  }
  if (facts.standbys > 0 && facts.synchronousStandbys === '') {
    const detail = 'the standbys are asynchronous, so a failover loses acknowledged writes';
    add('warn', detail, 'set synchronous_standby_names');
  }
  if (facts.freeConnections < needed) {
    const detail = `${Math.max(0, facts.freeConnections)} connections are free; Cloudlet needs ${needed}`;
    add(
      'warn',
      `${detail}, unless Cloudlet is already running`,
      'raise max_connections, or the connection limit of the role or the database',
    );
  }
  if (Math.abs(facts.clockAheadMs) > MOST_CLOCK_MS) {
    const seconds = (facts.clockAheadMs / 1000).toFixed(1);
    add(
      'warn',
      `the clock of PostgreSQL differs from this host's by ${seconds} s`,
      'synchronize both clocks with NTP',
    );
  }
  if (found.length > 0) return found;
  const standbys = facts.standbys === 0 ? 'no standby' : `standbys: ${facts.synchronousStandbys}`;
  return [{ level: 'ok', subject: SUBJECT, detail: `${place}, version ${facts.version}, ${standbys}` }];
}
