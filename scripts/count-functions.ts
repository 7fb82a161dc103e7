/**
 * Loaded by `--import` into a Cloudlet and each of its threads: counts which functions run, by V8's
 * precise coverage (Profiler of the Chrome DevTools Protocol). Whoever connects to the socket
 * `TRIPS_SOCKET` gets one line of JSON, `[file, function][]`: what ran in all threads since the last one.
 *
 * Not over `--inspect`: a thread that ends while a debugger is attached to it blocks the main thread.
 */
import { Session } from 'node:inspector';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

export type RanFunction = readonly [file: string, name: string];

interface FunctionCoverage {
  readonly functionName: string;
  readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
}

/**
 * Child processes inherit NODE_OPTIONS, and with it this module: only the first process, and its threads, are
 * part of a trip. A child would take the socket, or fail at it.
 */
process.env.TRIPS_PROCESS ??= String(process.pid);
const isMeasured = process.env.TRIPS_PROCESS === String(process.pid);

/** Time limit for the threads' answers, ms. Functions of a slower thread are in the next line. */
const THREADS_MS = 200;

const session = new Session();

function ranHere(): RanFunction[] {
  const ran: RanFunction[] = [];
  session.post('Profiler.takePreciseCoverage', (_error, coverage) => {
    for (const { url, functions } of coverage?.result ?? []) {
      const file = /\/(server\/(?!.*node_modules).*)$/.exec(url)?.[1];
      if (file !== undefined)
        ran.push(...functions.filter(hasRun).map((each) => [file, nameOf(each)] as const));
    }
  });
  return ran;
}

/** The function at offset 0 without a name is the module itself. */
function hasRun({ functionName, ranges: [range] }: FunctionCoverage): boolean {
  return range !== undefined && range.count > 0 && (functionName !== '' || range.startOffset > 0);
}

/** A name may occur twice in a file, so its offset belongs to it. */
function nameOf({ functionName, ranges: [range] }: FunctionCoverage): string {
  return `${functionName || 'anonymous'}@${range?.startOffset}`;
}

function measure(): void {
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const channel = new BroadcastChannel('trips');
  channel.unref();
  if (isMainThread) serve(channel);
  else answer(channel);
}

/** Answers those who connect to the socket, for all threads. */
function serve(channel: BroadcastChannel): void {
  const others: RanFunction[] = [];
  channel.onmessage = ({ data }: { data: unknown }) => {
    if (Array.isArray(data)) others.push(...data);
  };
  const server = createServer(async (socket) => {
    channel.postMessage('taken?');
    await sleep(THREADS_MS);
    socket.end(`${JSON.stringify([...ranHere(), ...others.splice(0)])}\n`);
  });
  server.listen(process.env.TRIPS_SOCKET).unref();
}

/** Reports to the main thread which functions ran in this one. */
function answer(channel: BroadcastChannel): void {
  channel.onmessage = ({ data }: { data: unknown }) => {
    if (!Array.isArray(data)) channel.postMessage(ranHere());
  };
}

if (isMeasured) measure();
