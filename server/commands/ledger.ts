/** `cloudlet ledger verify`: walks the whole ledger now and names the first inconsistent transfer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, UsageError } from './command.ts';
import { asOperator, type CallAsOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet ledger verify [--head <number>:<hash>]

Walks every transfer of the ledger and compares all balances with it. Exit code 0 when all are sound, 1 when
one was changed, is missing, or does not add up: it is named.

  --head   the head that an earlier call printed: finds transfers cut off the end since
`;

interface Report {
  readonly running: boolean;
  readonly seconds: number | null;
  readonly checked: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly problem: string | null;
}

const PATH = '/api/admin/ledger/verify';
const POLL_MS = 100;

export const LEDGER: Command = {
  help: HELP,
  options: ['head'],
  run: async (config, { positionals, values }) => {
    if (positionals.join(' ') !== 'verify')
      throw new UsageError('ledger knows only verify; see cloudlet ledger --help');
    const body = values['head'] === undefined ? {} : { head: readHead(values['head']) };
    return asOperator(config, (call) => verify(call, body));
  },
};

function readHead(text: string): { seq: number; hash: string } {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined) {
    throw new UsageError('--head must be <number>:<hash>, as an earlier call printed it');
  }
  return { seq: Number(seq), hash };
}

async function verify(call: CallAsOperator, body: object): Promise<number> {
  await idle(call);
  await call({ method: 'POST', path: PATH, body });
  const { seconds, checked, head, problem } = await idle(call);
  const speed = seconds ? `, ${Math.round(checked / seconds)} a second` : '';
  console.log(`${checked} transfers verified${speed}; head ${head.seq}:${head.hash}`);
  if (seconds === null) throw new Error('the walk was broken off; the log of the server says why');
  if (problem === null) return 0;
  console.log(`inconsistent: ${problem}`);
  return 1;
}

/** The report once no walk runs: the one of a server's start may. */
async function idle(call: CallAsOperator): Promise<Report> {
  for (;;) {
    const report = await call<Report>({ method: 'GET', path: PATH });
    if (!report.running) return report;
    await sleep(POLL_MS);
  }
}
