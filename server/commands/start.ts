/** `cloudlet start`: builds the cloud, listens, and shuts down gracefully. */
import type { Server } from 'node:http';
import { flushCompileCache } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { type Logger, pino } from 'pino';
import { type BuildOptions, buildCloud, type Cloud } from '../cloud/cloud.ts';
import { prepareMissing } from '../cloud/preparation.ts';
import type { Config } from '../config/config.ts';
import { comeFirst } from '../drivers/host-process/processor-order.ts';
import { WRITER_NAME } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { controlPath, listenOnControlSocket } from '../http/control-server.ts';
import { collectOnceQuiet } from '../platform/background/quiet-collection.ts';
import { systemClock } from '../platform/clock.ts';
import { StartupError } from '../platform/data-directory.ts';
import { withSourceFrames } from '../platform/stacks/source-frames.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { startReport } from './start-report.ts';
import { listenForNodes, parentEnded, Workers } from './workers.ts';

const HELP = `Usage: cloudlet start [--port PORT]

Runs the cloud in the foreground until SIGTERM or Ctrl+C. Requests in progress then have 10 seconds to finish.

  --port PORT       port of the API; default: CLOUDLET_PORT, or 8080
`;

const STOP_SECONDS = 10;
/**
 * A node of a cluster keeps responding for this long after it reports that it is not ready: proxies
 * must notice.
 */
const DRAIN_MS = 5000;
/** Temporary failure (sysexits.h): the supervisor starts this node of a cluster again. */
const FENCED = 75;
const IDLE_SWEEP_MS = 50;

export const START: Command = { help: HELP, options: ['port'], flags: ['worker'], run };

/** Resolves after the cloud has stopped. */
async function run(config: Config, { positionals, values }: Words): Promise<number> {
  if (positionals.length > 0) throw new UsageError('start takes no arguments; see cloudlet start --help');
  outliveTerminal();
  const began = systemClock.monotonic();
  const log = openLog(config);
  const report = startReport(config, log);
  report.begin();
  const step: BuildOptions['step'] = async (name, work) => {
    const from = systemClock.monotonic();
    const result = await work();
    report.opened(name, Math.round(systemClock.monotonic() - from));
    return result;
  };
  const isWorker = values.worker !== undefined;
  const running = await startCloud(config, step, { log, isWorker });
  const first = comeFirst([WRITER_NAME]);
  const workers = new Workers(config, log);
  workers.start();
  // A reader of the ready message may stop it at once.
  const stopped = Promise.race([stopSignal(), ...(isWorker ? [parentEnded()] : [])]);
  await report.ready(running.cloud, (systemClock.monotonic() - began) / 1000);
  await first;
  flushCompileCache(); // otherwise only a regular stop would store the cache
  const collection = collectOnceQuiet();
  const endPreparing = await prepareMissing(report.preparing);
  await stopped;
  collection.stop();
  endPreparing();
  report.stopping();
  const [machines] = await Promise.all([running.stop(), workers.stop()]);
  if (machines > 0) report.stopped(machinesRunOn(machines));
  return 0;
}

interface RunningCloud {
  readonly cloud: Cloud;
  /** Resolves with the number of virtual machines that keep running. */
  stop(): Promise<number>;
}

interface StartOptions extends Pick<BuildOptions, 'tellMs'> {
  readonly log?: Logger;
  readonly isWorker?: boolean;
}

/** Builds the cloud and listens on both ports and the control socket. `step` reports each part. */
export async function startCloud(
  config: Config,
  step: BuildOptions['step'],
  { log = openLog(config), isWorker = false, tellMs }: StartOptions = {},
): Promise<RunningCloud> {
  const { host, port, dataPort, workers } = config;
  // With workers any process may accept a connection.
  const shared = { host, reusePort: isWorker || workers > 0 };
  const onFenced = () => {
    log.flush(() => process.exit(FENCED));
  };
  const cloud = await buildCloud({ config, clock: systemClock, log, step, onFenced, tellMs });
  try {
    const control = await startControl(cloud);
    const api = await listen(cloud.api, { ...shared, port, setting: 'CLOUDLET_PORT' });
    const data = await listen(cloud.data, { ...shared, port: dataPort, setting: 'CLOUDLET_DATA_PORT' });
    const nodes = workers > 0 ? await listenForNodes(config, cloud.api.server) : undefined;
    cloud.addresses.listenAt({ apiUrl: api, dataUrl: data });
    cloud.serve();
    process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled promise rejection'));
    const end = async () => {
      nodes?.close();
      return stop(cloud, control);
    };
    return { cloud, stop: end };
  } catch (error) {
    await cloud.close();
    throw error;
  }
}

/** The control socket alone, for commands while no server runs. */
export async function startControl(cloud: Cloud): Promise<Server> {
  await cloud.api.ready();
  return listenOnControlSocket(cloud.api, controlPath(cloud.config), cloud.control);
}

interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Others may listen there too, and the kernel spreads connections over them. */
  readonly reusePort: boolean;
  /** Setting to change when the port is unavailable. */
  readonly setting: string;
}

async function listen(app: FastifyInstance, { setting, ...at }: ListenAddress): Promise<string> {
  const { host, port } = at;
  try {
    await app.listen(at);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'EADDRINUSE')
      throw new StartupError(
        `Port ${port} on ${host} is in use: stop the program that uses it, or set ${setting}`,
      );
    if (code === 'EACCES')
      throw new StartupError(`No permission to listen on port ${port}: set ${setting} to 1024 or above`);
    if (code === 'EADDRNOTAVAIL')
      throw new StartupError(`${host} is not an address of this host: set CLOUDLET_HOST`);
    if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
      throw new StartupError(`CLOUDLET_HOST: the host name ${host} cannot be resolved (${code})`);
    throw error;
  }
  const { port: actual } = app.server.address() as AddressInfo;
  const shown = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${actual}`;
}

function machinesRunOn(count: number): string {
  const [run, address] =
    count === 1 ? ['machine keeps', 'its address is'] : ['machines keep', 'their addresses are'];
  return [
    `${count} virtual ${run} running; ${address} reachable again when Cloudlet is restarted.`,
    'To stop machines, start Cloudlet and call POST /api/vms/{vm_id}/stop for each; GET /api/vms lists yours,',
    'GET /api/admin/vms lists those of all accounts.',
  ].join('\n');
}

async function stop(cloud: Cloud, control: Server): Promise<number> {
  await cloud.leave();
  if (cloud.isShared) await sleep(DRAIN_MS);
  const servers = [cloud.api.server, cloud.data.server, control];
  const cut = setTimeout(() => {
    for (const server of servers) server.closeAllConnections();
  }, STOP_SECONDS * 1000);
  // Node closes connections that are idle now, not those that become idle after their response.
  const sweep = setInterval(() => {
    for (const server of servers) server.closeIdleConnections();
  }, IDLE_SWEEP_MS);
  await Promise.all([
    cloud.api.close(),
    cloud.data.close(),
    new Promise((resolve) => control.close(resolve)),
    cloud.drain(STOP_SECONDS * 1000),
  ]);
  clearTimeout(cut);
  clearInterval(sweep);
  const machines = await cloud.countRunning();
  await cloud.close();
  return machines;
}

const STANDARD_STREAMS = [0, 1, 2];

/**
 * Resolves with the signal that stops the process: SIGTERM, SIGINT (Ctrl+C), or SIGHUP when its
 * terminal closes. Later signals are ignored: for one Ctrl+C, both the terminal and npm send one.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  // Node overrides nohup's signal handling. Without a terminal, SIGHUP cannot mean that one closed.
  const hasTerminal = STANDARD_STREAMS.some((stream) => isatty(stream));
  return new Promise((resolve) => {
    process.on('SIGTERM', resolve);
    process.on('SIGINT', resolve);
    process.on('SIGHUP', (signal) => {
      if (hasTerminal) resolve(signal);
    });
  });
}

/** Writing to a terminal that has closed fails, which must not end the process. */
export function outliveTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

const SECRETS = ['key', 'password', 'token', 'headers'];

/** Text for people on a terminal, JSON elsewhere, unless CLOUDLET_LOG_FORMAT is set. */
export function openLog({ logLevel: level, logFormat: format }: Config): Logger {
  const isTerminal = process.stderr.isTTY === true;
  const output = isTerminal ? process.stderr : fileOutput();
  const isText = format === 'text' || (format === 'auto' && isTerminal);
  const write = (line: string) => output.write(isText ? readableLine(line, process.stderr) : line);
  return pino({ level, redact: SECRETS, serializers: { err: errorFields } }, { write });
}

function errorFields(error: Error) {
  const fields = pino.stdSerializers.err(error);
  return { ...fields, stack: withSourceFrames(fields.stack ?? '') };
}

/** Never waits for the reader of a pipe. Output that a full disk refuses is written once there is space. */
function fileOutput() {
  const output = pino.destination({ fd: 2, sync: false, maxLength: MOST_WAITING_BYTES });
  output.on('error', () => {
    // At the end of the process pino would retry forever.
    output.flushSync = () => {};
  });
  return output;
}

/** Above this size, new lines are dropped. */
const MOST_WAITING_BYTES = 16 * 2 ** 20;

interface Entry {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly stack?: string };
}

/** Level names by pino's numbers. */
const LEVELS: Readonly<Record<number, { name: string; style: Parameters<typeof styleText>[0] }>> = {
  20: { name: 'debug', style: 'dim' },
  30: { name: 'info', style: 'green' },
  40: { name: 'warn', style: 'yellow' },
  50: { name: 'error', style: 'red' },
  60: { name: 'fatal', style: 'red' },
};
const INDENT = '    ';

/**
 * `json` is one line of pino's. Errors come last, with their stack on lines of their own. `stream`:
 * the destination, because colours are for a terminal, unless NO_COLOR is set.
 */
export function readableLine(json: string, stream: NodeJS.WritableStream): string {
  const { level, time, msg = '', err, pid, hostname, ...fields } = JSON.parse(json) as Entry & Fields;
  const { name, style } = LEVELS[level] ?? { name: String(level), style: 'dim' };
  const paint = (how: typeof style, text: string) => styleText(how, text, { stream });
  const shown = Object.entries(fields).map(([field, value]) => paint('dim', `${field}=${valueText(value)}`));
  const at = new Date(time).toISOString().replace('T', ' ').slice(0, 19);
  const head = [`${at}Z`, paint(style, name.padEnd(5)), visible(msg), ...shown].join(' ');
  return `${head}\n${err === undefined ? '' : errorText(err)}`;
}

type Fields = Readonly<Record<string, unknown>>;

function valueText(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[^\s"=]+$/.test(value);
  return visible(isPlain ? value : JSON.stringify(value));
}

function errorText({ stack = '', ...more }: NonNullable<Entry['err']> & Fields): string {
  const { type, message, ...rest } = more;
  const text = stack === '' ? `${type}: ${message}` : stack;
  const lines = Object.keys(rest).length === 0 ? [text] : [text, JSON.stringify(rest)];
  return `${lines
    .join('\n')
    .split('\n')
    .map((line) => INDENT + visible(line.trimEnd()))
    .join('\n')}\n`;
}

/** Some lines contain untrusted text, which must not control the terminal. */
function visible(text: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}
