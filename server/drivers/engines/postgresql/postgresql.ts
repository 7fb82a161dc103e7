/** PostgreSQL, described for `managed-server/`. */
import { join } from 'node:path';
import { DumpsMissing } from '../../../databases/engine.ts';
import { programsOrThrow } from '../../managed-server/database-server.ts';
import { SOCKET_LINK } from '../../managed-server/programs/client-programs.ts';
import type { NoPrograms } from '../../managed-server/programs/unpacked-programs.ts';
import type { ClientTarget, SqlKind } from '../../managed-server/sql-server.ts';
import { REFUSALS, type ServerFacts, serverFacts, unmetNeed } from './external-server-facts.ts';
import { PostgresqlLinks } from './postgresql-links.ts';
import { findPrograms, missingOf, type PostgresqlPrograms, readinessBy } from './postgresql-programs.ts';
import { ADMIN } from './postgresql-store.ts';
import { dataMajor } from './server/data-directory.ts';
import { PostgresqlServer } from './server/postgresql-server.ts';

const DATABASE = 'postgres';
const CA_FILE = 'ca.pem';
const CLIENTS = { client: 'psql', dump: 'pg_dump', copy: 'pg_basebackup' };

export type PostgresqlKind = SqlKind<PostgresqlLinks, ServerFacts>;

/** `find`: other programs, for tests. */
export function postgresqlKind(find = findPrograms): PostgresqlKind {
  return {
    name: 'postgresql',
    title: 'PostgreSQL',
    administrator: { user: ADMIN, database: DATABASE },
    wrongPassword: '28P01',
    links: (deps) => new PostgresqlLinks(deps),
    process: (deps) => new PostgresqlServer(deps, find),
    readiness: readinessBy(find),
    command: async (target, { program, args, env, user, password }) => {
      const programs =
        'folders' in target
          ? withClients(programsOrThrow('PostgreSQL', await find(dataMajor(target.folders))))
          : programsOrThrow('pg_dump', await clientPrograms(target.facts?.major ?? 0));
      const connection = {
        ...serverOf(target),
        PGPORT: String(target.port),
        PGUSER: user,
        PGPASSWORD: password,
        PGCONNECT_TIMEOUT: '10',
      };
      return {
        command: join(programs.bin, CLIENTS[program]),
        args,
        env: { ...programs.env, ...connection, ...env },
        readOnly: programs.readOnly,
        files: 'host' in target && target.ca !== null ? { [CA_FILE]: target.ca } : {},
      };
    },
    external: {
      title: 'PostgreSQL',
      database: DATABASE,
      refusals: REFUSALS,
      facts: (links) => links.asAdmin(serverFacts),
      unmet: (facts, address) => facts && unmetNeed(facts, address),
      clients: ({ major }) => clientPrograms(major),
    },
  };
}

function serverOf(target: ClientTarget<ServerFacts>): Record<string, string> {
  // Relative to its working directory, whatever path the program sees.
  if ('folders' in target) return { PGHOST: `/proc/self/cwd/${SOCKET_LINK}` };
  const { host, ca } = target;
  if (ca === null) return { PGHOST: host, PGSSLMODE: 'disable' };
  return { PGHOST: host, PGSSLMODE: 'verify-full', PGSSLROOTCERT: `/proc/self/cwd/${CA_FILE}` };
}

/** Throws DumpsMissing if only the server is installed. */
export function withClients(programs: PostgresqlPrograms): PostgresqlPrograms {
  const missing = missingOf(programs);
  if (missing !== null) throw new DumpsMissing(missing.reason, missing.fix);
  return programs;
}

/** Programs of the server's major version or newer: older ones cannot dump. */
async function clientPrograms(major: number): Promise<PostgresqlPrograms | NoPrograms> {
  for (const wanted of [major, null]) {
    const found = await findPrograms(wanted);
    if ('version' in found && found.hasClients && found.major >= major) return found;
  }
  return {
    reason: `pg_dump and psql of PostgreSQL ${major} are not on this host`,
    fix: `install the client programs of PostgreSQL ${major} or newer on the host of Cloudlet`,
  };
}
