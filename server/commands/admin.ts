/** `cloudlet admin …`: what the owner of the machine may do without a key. */
import { parseArgs } from 'node:util';
import type { Config } from '../config.ts';
import { asOperator, type CallAsOperator } from './operator-call.ts';
import { UsageError } from './usage.ts';

const HELP = `Usage: cloudlet admin create [--username admin] [--email EMAIL] [--password PASSWORD]
       cloudlet admin key [--username admin]
       cloudlet admin credits --username NAME --amount CREDITS --reason TEXT

create   makes an administrator and prints the API key; without a password only the key lets in
key      prints the API key of an account
credits  grants credits, or deducts them when the amount is negative (write --amount=-5)

Works whether the server runs or not.
`;

interface Account {
  readonly id: number;
  readonly username: string;
  readonly api_key: string;
  readonly credits: number;
}

export async function runAdmin(config: Config, args: string[]): Promise<number> {
  const { positionals, values } = parse(args);
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const [verb] = positionals;
  const username = values.username ?? 'admin';
  if (verb === 'create') return asOperator(config, (call) => create(call, username, values));
  if (verb === 'key') return asOperator(config, (call) => showKey(call, username));
  if (verb === 'credits') return asOperator(config, (call) => credits(call, values));
  throw new UsageError('admin: expected create, key or credits; see cloudlet admin --help');
}

interface Values {
  readonly username?: string;
  readonly email?: string;
  readonly password?: string;
  readonly amount?: string;
  readonly reason?: string;
  readonly help?: boolean;
}

function parse(args: string[]): { positionals: string[]; values: Values } {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        username: text,
        email: text,
        password: text,
        amount: text,
        reason: text,
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(`admin: ${(error as Error).message}`);
  }
}

async function create(call: CallAsOperator, username: string, values: Values): Promise<number> {
  const password = values.password === undefined ? {} : { password: values.password };
  const body = {
    username,
    email: values.email ?? `${username}@localhost.localdomain`,
    is_admin: true,
    ...password,
  };
  const account = await call<Account>({ method: 'POST', path: '/api/admin/accounts', body });
  console.log(`Administrator ${account.username} (account ${account.id})\nAPI key: ${account.api_key}`);
  return 0;
}

async function showKey(call: CallAsOperator, username: string): Promise<number> {
  const { id } = await find(call, username);
  const account = await call<Account>({ method: 'POST', path: `/api/admin/accounts/${id}/api-key` });
  console.log(account.api_key);
  return 0;
}

async function credits(call: CallAsOperator, values: Values): Promise<number> {
  const amount = Number(values.amount);
  if (values.username === undefined || values.reason === undefined || !Number.isFinite(amount)) {
    throw new UsageError('admin credits: needs --username, --amount and --reason; see cloudlet admin --help');
  }
  const { id } = await find(call, values.username);
  const body = { amount, reason: values.reason };
  const account = await call<Account>({ method: 'POST', path: `/api/admin/accounts/${id}/credits`, body });
  console.log(`${account.username} now has ${account.credits} credits`);
  return 0;
}

async function find(call: CallAsOperator, username: string): Promise<Account> {
  const accounts = await call<Account[]>({ method: 'GET', path: '/api/admin/accounts' });
  const account = accounts.find((candidate) => candidate.username.toLowerCase() === username.toLowerCase());
  if (!account) throw new Error(`there is no account named ${username}`);
  return account;
}
