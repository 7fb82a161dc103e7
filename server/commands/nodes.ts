/** `cloudlet nodes …`: the nodes of a cluster, from any of them, without a key. */
import { type Command, UsageError } from './command.ts';
import { askServer, type CallAsOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet nodes list
       cloudlet nodes drain NODE
       cloudlet nodes resume NODE
       cloudlet nodes forget NODE

list    prints the nodes of the cluster; * marks the one of this data directory
drain   takes a node out of load balancing: its /readyz returns 503, and it takes no leases. It still
        answers requests
resume  undoes drain, as does a restart of the node
forget  removes a stopped or lost node from the list

NODE is a name, an id, or self, which is the node of this data directory; it must be running.
`;

interface Node {
  readonly node_id: string;
  readonly name: string;
  readonly version: string;
  readonly role: string;
  readonly state: string;
  readonly since: string;
  readonly beat_age_seconds: number;
  readonly leases: readonly string[];
  readonly is_this: boolean;
  readonly url: string | null;
}

const PATH = '/api/admin/nodes';
const CHANGES: Readonly<Record<string, { method: string; end: string }>> = {
  drain: { method: 'POST', end: '/drain' },
  resume: { method: 'POST', end: '/resume' },
  forget: { method: 'DELETE', end: '' },
};

const SAID: Readonly<Record<string, (name: string) => string>> = {
  drain: (name) =>
    `${name} is draining: /readyz returns 503 within a second; it answers requests until you stop it`,
  resume: (name) => `${name} is up`,
  forget: (name) => `${name} is removed from the list`,
};

export const NODES: Command = {
  help: HELP,
  run: async (config, { positionals: [verb = '', node, ...rest] }) => {
    if (verb === 'list' && node === undefined) return askServer(config, list);
    const isChange = Object.hasOwn(CHANGES, verb);
    if (!isChange || rest.length > 0)
      throw new UsageError('nodes: expected list, drain, resume or forget; see cloudlet nodes --help');
    if (node === undefined) throw new UsageError(`nodes ${verb}: name a node; see cloudlet nodes list`);
    return askServer(config, (call) => change(call, verb, node));
  },
};

const nodesOf = (call: CallAsOperator) => call<Node[]>({ method: 'GET', path: PATH });

async function list(call: CallAsOperator): Promise<number> {
  const rows = (await nodesOf(call)).map((node) => {
    const { name, role, state, version, beat_age_seconds: age, leases, node_id: id, url } = node;
    const marked = node.is_this ? `${name} *` : name;
    return [marked, role, state, version, `${age.toFixed(1)} s`, String(leases.length), id, url ?? '-'];
  });
  const all = [['NAME', 'ROLE', 'STATE', 'VERSION', 'BEAT', 'LEASES', 'ID', 'URL'], ...rows];
  const widths = all[0]?.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0))) ?? [];
  for (const row of all)
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  return 0;
}

async function change(call: CallAsOperator, verb: string, wanted: string): Promise<number> {
  const { method, end } = CHANGES[verb] as { method: string; end: string };
  const id = wanted === 'self' ? wanted : await idOf(call, wanted);
  const node = await call<Node>({ method, path: `${PATH}/${encodeURIComponent(id)}${end}` });
  console.log(SAID[verb]?.(node.name));
  return 0;
}

async function idOf(call: CallAsOperator, wanted: string): Promise<string> {
  const nodes = await nodesOf(call);
  if (nodes.some(({ node_id: id }) => id === wanted)) return wanted;
  const named = nodes.filter(({ name }) => name === wanted);
  if (named.length > 1) throw new Error(`${named.length} nodes are named ${wanted}: give the id of one`);
  if (named[0] === undefined) throw new Error(`no node is named ${wanted}; see cloudlet nodes list`);
  return named[0].node_id;
}
