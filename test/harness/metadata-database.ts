/** A PostgreSQL database for the metadata of each test cloud, if tests run with PostgreSQL. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';

/** URL of an administrator of a PostgreSQL server; undefined: clouds store their metadata in a file. */
const SERVER = process.env.TEST_METADATA_SERVER;

/** The database of the cloud in this data directory, created at its first start. */
export async function metadataEnv(dataDir: string): Promise<Readonly<Record<string, string>>> {
  // A restored cloud has its metadata in a file, wherever they were.
  if (SERVER === undefined || existsSync(join(dataDir, 'metadata.db'))) return {};
  const name = nameOf(dataDir);
  await run(`CREATE DATABASE ${name}`).catch((error: pg.DatabaseError) => {
    if (error.code !== '42P04') throw error;
  });
  return { CLOUDLET_METADATA_URL: Object.assign(new URL(SERVER), { pathname: `/${name}` }).href };
}

export async function dropMetadata(dataDir: string): Promise<void> {
  if (SERVER !== undefined) await run(`DROP DATABASE IF EXISTS ${nameOf(dataDir)} WITH (FORCE)`);
}

function nameOf(dataDir: string): string {
  return `t_${createHash('sha256').update(dataDir).digest('hex').slice(0, 24)}`;
}

async function run(sql: string): Promise<void> {
  const client = new pg.Client(SERVER);
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
