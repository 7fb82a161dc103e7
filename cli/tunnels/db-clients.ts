/** Programs that connect to databases, and how they receive a password: never on their command line. */
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseConnection, DatabaseEngine } from '../../sdk/index.ts';
import { hasProgram, homeFolder, withVariables } from '../environment.ts';
import type { ExitCode } from '../failures.ts';
import { runChild } from './child.ts';

const LOOPBACK = '127.0.0.1';

/** A program with its arguments and secrets to log in at a local port. */
interface Call {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The user's variables that would change the target. */
  readonly without: RegExp;
  /** Content of SECRET_FILE. */
  readonly secret?: string;
}

/** An unnamed file, so that nothing is left behind if the process is killed. */
const SECRET_FILE = '/dev/fd/3';

interface Login {
  readonly connection: DatabaseConnection;
  /** PEM; null: the certificate is not issued by the cloud's CA. */
  readonly ca: string | null;
  readonly port: number;
  /** Folder for files without secrets. */
  readonly folder: string;
  /** The user's arguments, after our own. */
  readonly words: readonly string[];
}

const fileIn = (folder: string, name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  return path;
};

/** Variables that define libpq's connection; others concern formats, or psql. */
const OF_LIBPQ = /^PG(?!CLIENTENCODING$|DATESTYLE$|OPTIONS$|TZ$)/;

function psql({ connection, ca, port, folder, words }: Login): Call {
  const { host, username, password = '', database, tls } = connection;
  const env: Record<string, string> = {
    PGHOST: tls ? host : LOOPBACK,
    PGHOSTADDR: LOOPBACK,
    PGPORT: String(port),
    PGUSER: username,
    PGDATABASE: database,
    PGPASSWORD: password,
    PGSSLMODE: tls ? (ca === null ? 'require' : 'verify-full') : 'disable',
  };
  if (ca !== null) env.PGSSLROOTCERT = fileIn(folder, 'ca.pem', ca);
  return { program: 'psql', args: words, env, without: OF_LIBPQ };
}

/** Quoted for an option file; a line break would start another option. */
function optionText(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;
}

/**
 * Certificates of the cloud's authority are valid for the loopback address too; an operator's own
 * only for its name.
 */
function mysqlTls(isMariadb: boolean, tls: boolean, caFile: string | null): string[] {
  const ca = caFile === null ? [] : [`ssl-ca=${optionText(caFile)}`];
  if (!isMariadb)
    return [`ssl-mode=${tls ? (caFile === null ? 'REQUIRED' : 'VERIFY_IDENTITY') : 'DISABLED'}`, ...ca];
  if (!tls) return ['skip-ssl'];
  return ['ssl', `${caFile === null ? 'disable-' : ''}ssl-verify-server-cert`, ...ca];
}

function mysqlClient(program: string): (login: Login) => Call {
  return ({ connection, ca, port, folder, words }) => {
    const { username, password = '', database, tls } = connection;
    const isMariadb = program === 'mariadb' || /mariadb/i.test(versionOf(program));
    const caFile = ca === null ? null : fileIn(folder, 'ca.pem', ca);
    // The last value of an option wins, and a user's file may name another server.
    const users = join(homeFolder(), '.my.cnf');
    const lines = [
      ...(existsSync(users) ? [`!include ${users}`] : []),
      '[client]',
      ...[`host=${LOOPBACK}`, `port=${port}`, 'protocol=tcp'],
      ...[`user=${optionText(username)}`, `password=${optionText(password)}`],
      ...mysqlTls(isMariadb, tls, caFile),
    ];
    const args = [`--defaults-file=${SECRET_FILE}`, `--database=${database}`, ...words];
    return { program, args, env: {}, without: /^MYSQL_/, secret: `${lines.join('\n')}\n` };
  };
}

const versionOf = (program: string) => spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '';

/** Options that make mongosh exit; without them, it is interactive. */
const MONGOSH_WORK = /^(?:--eval(?:=|$)|--file(?:=|$)|-f$|[^-].*\.(?:js|mongodb)$)/;
const MONGOSH_URI = 'CLOUDLET_MONGODB_URI';

function mongosh({ connection, ca, port, folder, words }: Login): Call {
  const uri = new URL(connection.uri);
  uri.host = `${LOOPBACK}:${port}`;
  uri.searchParams.set('directConnection', 'true');
  if (connection.tls && ca === null) uri.searchParams.set('tlsAllowInvalidHostnames', 'true');
  if (ca !== null) uri.searchParams.set('tlsCAFile', fileIn(folder, 'ca.pem', ca));
  const connect = `db = connect(process.env.${MONGOSH_URI}); void delete process.env.${MONGOSH_URI}`;
  const shell = words.some((word) => MONGOSH_WORK.test(word)) ? [] : ['--shell'];
  const args = ['--nodb', '--quiet', ...shell, '--eval', connect, ...words];
  return { program: 'mongosh', args, env: { [MONGOSH_URI]: uri.href }, without: /^$/ };
}

/** Programs of engines (`client` of GET /api/database-engines) that can be run here. */
const CLIENTS: Readonly<Record<string, (login: Login) => Call>> = {
  psql,
  mariadb: mysqlClient('mariadb'),
  mysql: mysqlClient('mysql'),
  mongosh,
};

/** The installed client of the engine, or undefined. */
export function installedClient({
  client,
}: Pick<DatabaseEngine, 'client'>): ((login: Login) => Call) | undefined {
  const found = client?.programs.find((program) => Object.hasOwn(CLIENTS, program) && hasProgram(program));
  return found === undefined ? undefined : CLIENTS[found];
}

/** Runs the client at a local port; resolves with its exit code. */
export async function runClient(
  call: (login: Login) => Call,
  login: Omit<Login, 'folder'>,
): Promise<ExitCode> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  let file: number | undefined;
  try {
    const { program, args, env, without, secret } = call({ ...login, folder });
    if (secret !== undefined) file = namelessFile(folder, secret);
    return await runChild({ program, args, env: withVariables(env, { without }), file });
  } finally {
    if (file !== undefined) closeSync(file);
    remove();
  }
}

function namelessFile(folder: string, text: string): number {
  const path = fileIn(folder, 'secret', text);
  const file = openSync(path, 'r');
  rmSync(path);
  return file;
}
