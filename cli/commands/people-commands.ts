/** Invitations and accounts. The cloud refuses callers who are not administrators. */
import type { Cloud, CreatedInvitation, Invitation } from '../../sdk/index.ts';
import type { Command, Invocation, Values } from '../command.ts';
import { EXIT, type ExitCode, tell, UsageError } from '../failures.ts';
import { counted, sizeText } from '../output.ts';
import { all } from '../resources.ts';
import { readTextFile } from '../text-file.ts';
import { numberOf } from '../words.ts';
import { DISKS, exportQuery, saveExport } from './export-commands.ts';

const DAY_SECONDS = 24 * 3600;

const TERMS = {
  plan: { value: 'NAME', summary: 'plan of each account; default: free' },
  credits: { value: 'N', summary: 'credits on top of the sign-up credits' },
  cap: { value: 'N', summary: 'spend cap of each account, credits per month; default: none' },
  until: { value: 'TIME', summary: 'suspend each account at this time: "YYYY-MM-DD HH:MM:SS", UTC' },
  days: { value: 'N', summary: 'days until the link expires; default: 7' },
  mail: { summary: 'mail the link to the e-mail address instead of printing it' },
} as const;

function termsOf(options: Values) {
  const [plan, credits, until] = [options.text('plan'), options.text('credits'), options.text('until')];
  const cap = options.text('cap');
  return {
    ...(plan !== undefined && { plan }),
    ...(credits !== undefined && { credits: numberOf('--credits', credits) }),
    ...(cap !== undefined && { spend_cap: numberOf('--cap', cap) }),
    ...(until !== undefined && { account_expires_at: until }),
    ...(options.has('mail') && { mail: true }),
    ...(options.has('days') && { expires_in: options.count('days', 7, 1) * DAY_SECONDS }),
  };
}

/** The person's name, as far as the invitation has it. */
function nameOf({ username, email, label }: Pick<Invitation, 'username' | 'email' | 'label'>): string {
  return username ?? email ?? label;
}

async function idOf(cloud: Cloud, name: string): Promise<string> {
  const accounts = await all(cloud.adminListAccounts());
  const account = accounts.find(({ username }) => username.toLowerCase() === name.toLowerCase());
  if (account === undefined) throw new UsageError(`There is no user ${name}`);
  return String(account.id);
}

/** Caps one account after the other; a failure is printed with the account's name, and the rest continues. */
async function capMany({ session, output, options, words }: Invocation): Promise<ExitCode> {
  const [given = '', ...names] = words;
  const spend_cap = given === 'none' ? null : numberOf('CREDITS', given);
  const plan = options.text('plan');
  if ((plan === undefined) === (names.length === 0))
    throw new UsageError('name the accounts, or their plan with --plan', 'See: cloudlet people');
  const { cloud } = session();
  const accounts = await all(cloud.adminListAccounts());
  const byName = new Map(accounts.map((account) => [account.username.toLowerCase(), account]));
  const unknown = names.filter((name) => !byName.has(name.toLowerCase()));
  if (unknown.length > 0) throw new UsageError(`There is no user ${unknown.join(', ')}; nothing was changed`);
  const chosen =
    plan === undefined
      ? [...new Set(names.map((name) => byName.get(name.toLowerCase())))].filter((one) => one !== undefined)
      : accounts.filter((account) => account.plan === plan && !account.is_admin);
  if (chosen.length === 0) throw new UsageError(`No user has the plan ${plan}`);
  const done = [];
  for (const { id, username } of chosen) {
    try {
      const changed = await cloud.adminChangeAccount(id, { spend_cap });
      done.push({ username, id, spend_cap: changed.spend_cap });
    } catch (error) {
      output.warn(`${username}: ${tell(error).lines.join(' ')}`);
    }
  }
  output.table(done, ['WHO', 'CAP'], (one) => [one.username, one.spend_cap ?? 'none']);
  if (done.length === chosen.length) return EXIT.ok;
  return done.length === 0 ? EXIT.failure : EXIT.partial;
}

const ROLES = ['user', 'auditor', 'administrator'] as const;

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'invite add',
    words: '',
    summary: 'create an invitation and print its link, once; --uses invites several people',
    options: {
      username: { value: 'NAME', summary: 'username of the account; default: chosen when joining' },
      email: { value: 'ADDRESS', summary: 'email address of the account; default: chosen when joining' },
      label: { value: 'TEXT', summary: 'note, shown only to administrators' },
      uses: { value: 'N', summary: 'number of accounts the link can create; default: 1' },
      ...TERMS,
    },
    run: async ({ session, output, options }) => {
      const named = ['username', 'email', 'label'].flatMap((name) => {
        const given = options.text(name);
        return given === undefined ? [] : [[name, given]];
      });
      const made = await session().cloud.adminCreateInvitation({
        ...Object.fromEntries(named),
        ...(options.has('uses') && { max_uses: options.count('uses', 1, 1) }),
        ...termsOf(options),
      });
      output.one(made, () => [made.url ?? `${made.id} is mailed to ${made.email}`]);
    },
  },
  {
    name: 'invite import',
    words: 'FILE',
    summary: 'create an invitation for each row of a CSV file, and print the links, once',
    details: [
      'The first row names the columns: any of username, email, label, plan, credits, spend_cap',
      'and account_expires_at.',
      'If a row is invalid, the error names its line and nobody is invited. FILE "-" is standard input.',
    ].join('\n'),
    options: TERMS,
    run: async ({ session, output, options, words: [file = ''] }) => {
      const csv = readTextFile(file);
      const { invitations } = await session().cloud.adminImportInvitations({ csv, ...termsOf(options) });
      output.table(invitations, ['WHO', 'LINK'], (made: CreatedInvitation) => {
        return [nameOf(made), made.url ?? 'by mail'];
      });
      const note = options.has('mail') ? 'The links are mailed.' : 'The links are not shown again.';
      output.note(`${counted(invitations.length, 'invitation')}. ${note}`);
    },
  },
  {
    name: 'invite ls',
    words: '',
    summary: 'list the invitations',
    run: async ({ session, output }) => {
      const invitations = await all(session().cloud.adminListInvitations());
      output.table(invitations, ['WHO', 'STATE', 'USES', 'PLAN', 'LINK ENDS', 'ID'], (one) => {
        return [nameOf(one), one.state, `${one.uses}/${one.max_uses}`, one.plan, one.expires_at, one.id];
      });
    },
  },
  {
    name: 'invite renew',
    words: 'ID',
    summary: 'replace an invitation link that was lost, has expired or was sent to the wrong address',
    options: {
      email: { value: 'ADDRESS', summary: 'another email address; default: unchanged' },
      days: TERMS.days,
      mail: TERMS.mail,
    },
    run: async ({ session, output, options, words: [id = ''] }) => {
      const email = options.text('email');
      const made = await session().cloud.adminRenewInvitation(id, {
        ...(email !== undefined && { email }),
        ...termsOf(options),
      });
      output.one(made, () => [made.url ?? `${made.id} is mailed to ${made.email}`]);
    },
  },
  {
    name: 'invite rm',
    words: 'ID',
    summary: 'revoke an invitation; accounts created with it stay',
    run: async ({ session, output, words: [id = ''] }) => {
      const revoked = await session().cloud.adminRevokeInvitation(id);
      output.one(revoked, () => [`${revoked.id} is ${revoked.state}`]);
    },
  },
  {
    name: 'people reset',
    words: 'NAME',
    summary: 'print a link, once, that sets a new password for a user; API keys stay valid',
    options: { mail: { summary: 'mail it to the confirmed address instead of printing it' } },
    run: async ({ session, output, options, words: [name = ''] }) => {
      const { cloud } = session();
      const id = await idOf(cloud, name);
      if (options.has('mail')) {
        const mailed = await cloud.adminMailResetLink(id);
        output.one(mailed, () => [
          `Mailed to ${mailed.mailed_to}; the link works until ${mailed.expires_at} UTC`,
        ]);
        return;
      }
      const link = await cloud.adminCreateResetLink(id);
      output.one(link, () => [link.url]);
    },
  },
  {
    name: 'rights',
    words: '[KEY]',
    summary: 'list the operations that this profile, or an access key, may call, including S3',
    details: 'KEY is the ID of an access key. Each answer is a decision of the cloud.',
    options: {
      account: { value: 'NAME', summary: 'show another account (administrators and auditors)' },
      refused: { summary: 'list refused operations instead, with the error' },
    },
    run: async ({ session, output, options, words: [key] }) => {
      const { cloud } = session();
      const query = key === undefined ? {} : { key };
      const name = options.text('account');
      const rights =
        name === undefined
          ? await cloud.getRights(query)
          : await cloud.adminGetRights(await idOf(cloud, name), query);
      const shown = [
        ...rights.operations.map(({ operation, summary, code }) => ({ operation, summary, code })),
        ...rights.s3_operations.map(({ operation, action, code }) => ({
          operation: `s3 ${operation}`,
          summary: action,
          code,
        })),
      ].filter(({ code }) => (code === null) !== options.has('refused'));
      output.table(shown, ['CALL', 'WHAT', 'ERROR'], ({ operation, summary, code }) => {
        return [operation, summary, code ?? ''];
      });
    },
  },
  {
    name: 'people role',
    words: 'NAME ROLE',
    summary: 'make an account a user, an auditor (reads everything, changes nothing) or an administrator',
    run: async ({ session, output, words: [name = '', role = ''] }) => {
      if (!ROLES.some((known) => known === role))
        throw new UsageError(`no role ${role}: use ${ROLES.join(', ')}`);
      const { cloud } = session();
      const change = { is_admin: role === 'administrator', is_auditor: role === 'auditor' };
      const changed = await cloud.adminChangeAccount(await idOf(cloud, name), change);
      output.one(changed, () => [`${name} is ${role === 'user' ? 'a user' : `an ${role}`}`]);
    },
  },
  {
    name: 'people cap',
    words: 'CREDITS [NAME…]',
    summary: 'set a monthly spend cap for accounts, which they cannot raise; "none" removes it',
    details:
      'At the cap, machines and databases are stopped, and nothing is deleted. Refused accounts are skipped.',
    options: { plan: { value: 'NAME', summary: 'all accounts of this plan, except administrators' } },
    run: capMany,
  },
  {
    name: 'people export',
    words: 'NAME FILE',
    summary: 'save all data of a user as a zip, even while the account is suspended or scheduled for removal',
    options: DISKS,
    run: async ({ session, output, options, words: [name = '', file = ''] }) => {
      const { cloud } = session();
      const id = await idOf(cloud, name);
      await saveExport(await cloud.adminExportAccount(id, exportQuery(options)), file, output);
    },
  },
  {
    name: 'people remove',
    words: 'NAME',
    summary: 'remove a user after 7 days; sign-in is blocked at once, and "people keep" undoes the removal',
    details: 'With --export all data of the user is saved first; if that fails, the user is not removed.',
    options: {
      reason: { value: 'TEXT', summary: 'reason for the audit log; default: removed' },
      export: { value: 'FILE', summary: 'first save all of the user’s data as a zip' },
      ...DISKS,
    },
    run: async ({ session, output, options, words: [name = ''] }) => {
      const { cloud } = session();
      const reason = options.text('reason') ?? 'removed';
      const [id, file] = [await idOf(cloud, name), options.text('export')];
      if (file !== undefined)
        await saveExport(await cloud.adminExportAccount(id, exportQuery(options)), file, output);
      const removed = await cloud.adminRemoveAccount(id, { reason });
      output.one(removed, () => [`${removed.username} is removed at ${removed.removed_at} UTC`]);
    },
  },
  {
    name: 'people keep',
    words: 'NAME',
    summary: 'undo the removal of a user before its 7 days are over',
    run: async ({ session, output, words: [name = ''] }) => {
      const { cloud } = session();
      const kept = await cloud.adminKeepAccount(await idOf(cloud, name));
      output.one(kept, () => [`${kept.username} is no longer scheduled for removal`]);
    },
  },
  {
    name: 'people',
    words: '',
    summary: 'list invited and registered people with their last activity, stored bytes and credits',
    run: async ({ session, output }) => {
      const { cloud } = session();
      const [invitations, accounts] = [
        await all(cloud.adminListInvitations()),
        await all(cloud.adminListAccounts()),
      ];
      const waiting = invitations.filter(({ state }) => state === 'open' || state === 'expired');
      const rows = [
        ...accounts.map((account) => ({ kind: 'account' as const, ...account })),
        ...waiting.map((invitation) => ({ kind: 'invitation' as const, ...invitation })),
      ];
      output.table(rows, ['WHO', 'STATE', 'JOINED', 'LAST SEEN', 'STORED', 'CREDITS', 'EXPIRES'], (row) => {
        if (row.kind === 'invitation') {
          const left = `${row.uses}/${row.max_uses}`;
          return [nameOf(row), row.state === 'open' ? 'invited' : 'link expired', left, '', '', '', ''];
        }
        const state = row.is_active ? 'joined' : 'suspended';
        const stored = sizeText(row.storage_bytes);
        return [row.username, state, row.created_at, row.last_seen_at, stored, row.credits, row.expires_at];
      });
    },
  },
];
