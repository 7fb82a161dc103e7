/** `cloudlet admin …`: operations for the owner of the machine, without a key. */
import { plural } from '../platform/plural.ts';
import { type Command, UsageError, type Words } from './command.ts';
import { askServer, asOperator, type CallAsOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet admin setup-link
       cloudlet admin create [--username admin] [--email EMAIL] [--password PASSWORD]
       cloudlet admin create-account --username NAME --email EMAIL
       cloudlet admin key [--username admin]
       cloudlet admin reset-link NAME
       cloudlet admin credits --username NAME --amount CREDITS --reason TEXT

setup-link  prints a single-use link to create the first administrator; it is valid for 30 minutes
create      creates an administrator and prints the API key. Without --password the administrator can
            sign in only with the API key. If an administrator exists already, --username is required
create-account
            creates an ordinary account, and prints a single-use link, valid for 1 hour, to set its password
key         prints the API key of an account
reset-link  prints a single-use link to set a new password for an account, also an administrator's; it is
            valid for 1 hour. The sessions of the account end when it is used; its API keys stay
credits     grants credits, or deducts them when the amount is negative

setup-link, create-account and reset-link require a running server. The other commands also work while the server is stopped.
`;

interface Account {
  readonly id: number;
  readonly username: string;
  readonly api_key: string;
  readonly credits: number;
  readonly is_admin: boolean;
}

export const ADMIN: Command = {
  help: HELP,
  options: ['username', 'email', 'password', 'amount', 'reason'],
  run: async (config, { positionals, values }) => {
    const [verb = '', ...rest] = positionals;
    const work = VERBS.get(verb);
    const mayName = verb === 'reset-link' && values.username === undefined;
    if (work === undefined || rest.length > (mayName ? 1 : 0))
      throw new UsageError(`admin: expected ${NAMED_VERBS}; see cloudlet admin --help`);
    const ask = LINKING.has(verb) ? askServer : asOperator;
    const named = mayName ? { ...values, username: rest[0] } : values;
    return ask(config, (call) => work(call, named));
  },
};

/** Verbs that print a link to the server. */
const LINKING = new Set(['setup-link', 'create-account', 'reset-link']);

type Values = Words['values'];

const VERBS = new Map([
  ['setup-link', showSetupLink],
  ['create', create],
  ['create-account', createAccount],
  ['key', showKey],
  ['reset-link', showResetLink],
  ['credits', credits],
]);
const NAMED_VERBS = [...VERBS.keys()].join(', ').replace(/, (?=[^,]*$)/, ' or ');

async function showSetupLink(call: CallAsOperator): Promise<number> {
  const { url } = await call<{ url: string }>({ method: 'POST', path: '/api/admin/setup-link' });
  console.log(`Open this link within 30 minutes to become the administrator:\n${url}`);
  return 0;
}

async function create(call: CallAsOperator, values: Values): Promise<number> {
  const username = usernameIn(values);
  await assertNew(call, values.username);
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

async function createAccount(call: CallAsOperator, { username, email }: Values): Promise<number> {
  if (username === undefined || email === undefined)
    throw new UsageError('admin create-account: --username and --email are required');
  const body = { username, email };
  const account = await call<Account>({ method: 'POST', path: '/api/admin/accounts', body });
  console.log(`Account ${account.username} (account ${account.id})`);
  return printResetLink(call, account);
}

/** Without a user name, the first administrator is meant. */
async function assertNew(call: CallAsOperator, wanted: string | undefined): Promise<void> {
  const isMeant = (username: string) => wanted === undefined || isSame(username, wanted);
  const found = (await allOf(call)).find((account) => account.is_admin && isMeant(account.username));
  if (found === undefined) return;
  const { username, id } = found;
  throw new Error(
    `an administrator ${username} (account ${id}) already exists. To show the API key: ` +
      `cloudlet admin key --username ${username}. To create another: cloudlet admin create --username NAME`,
  );
}

async function showKey(call: CallAsOperator, values: Values): Promise<number> {
  const { id } = await find(call, usernameIn(values));
  const account = await call<Account>({ method: 'POST', path: `/api/admin/accounts/${id}/api-key` });
  console.log(account.api_key);
  return 0;
}

async function showResetLink(call: CallAsOperator, { username }: Values): Promise<number> {
  if (username === undefined)
    throw new UsageError('admin reset-link: the name of the account is required; see cloudlet admin --help');
  return printResetLink(call, await find(call, username));
}

async function printResetLink(call: CallAsOperator, { id, username }: Account): Promise<number> {
  const { url } = await call<{ url: string }>({
    method: 'POST',
    path: `/api/admin/accounts/${id}/reset-link`,
  });
  console.log(`Anyone who opens this link within 1 hour sets a new password for ${username}:\n${url}`);
  return 0;
}

async function credits(call: CallAsOperator, values: Values): Promise<number> {
  const amount = Number(values.amount);
  if (values.username === undefined || values.reason === undefined || !Number.isFinite(amount)) {
    throw new UsageError(
      'admin credits: --username, --amount and --reason are required; see cloudlet admin --help',
    );
  }
  const { id } = await find(call, values.username);
  const body = { amount, reason: values.reason };
  const account = await call<Account>({ method: 'POST', path: `/api/admin/accounts/${id}/credits`, body });
  console.log(`${account.username} now has ${plural(account.credits, 'credit')}`);
  return 0;
}

function usernameIn({ username = 'admin' }: Values): string {
  return username;
}

async function find(call: CallAsOperator, username: string): Promise<Account> {
  const account = (await allOf(call)).find((candidate) => isSame(candidate.username, username));
  if (!account) throw new Error(`no account is named ${username}`);
  return account;
}

function allOf(call: CallAsOperator): Promise<Account[]> {
  return call<Account[]>({ method: 'GET', path: '/api/admin/accounts' });
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
