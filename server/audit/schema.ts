/** Public schemas of the audit log. */
import { Paging } from '../http/list-page.ts';
import { namedObject, Type, textOrNull } from '../platform/json/json-schema.ts';

const TIME = 'YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339';
const OUTCOMES = ['done', 'refused', 'failed'];
const Outcome = Type.Enum(OUTCOMES, {
  description:
    '`refused`: the call had no effect; `failed`: an error of the cloud, so it may have had an effect',
});

export const AuditEntryView = namedObject('AuditEntry', {
  id: Type.Integer(),
  at: Type.String(),
  account_id: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Account whose resources are concerned; null: the cloud itself, or unknown',
  }),
  actor_id: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The account that acted; null: the operator on the host, Cloudlet itself, or unknown',
  }),
  actor: Type.String({
    description: 'Name of the account at that time, `operator` or `cloudlet`; empty: unknown',
  }),
  via: Type.String({
    description:
      '`key`, `session`, `control` (the operator on the host), `cloud` (Cloudlet itself) or `nobody`',
  }),
  credential: Type.String({ description: 'Id of the key; empty for sessions' }),
  address: Type.String(),
  user_agent: Type.String(),
  action: Type.String({
    description:
      'operationId of the call; S3 operations have the prefix `s3`. Without a call: `suspendExpiredAccount`, ' +
      '`removeClosedAccount`',
  }),
  target: Type.String({ description: 'Id or name of the resource' }),
  outcome: Outcome,
  status: Type.Integer(),
  code: Type.String({ description: 'Error code; empty: none' }),
  request_id: Type.String(),
  detail: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
    description: 'Selected members of the request and response, without secrets',
  }),
  times: Type.Integer({
    description:
      'Number of calls in this entry: very frequent refusals of one sender are counted, not listed',
  }),
});

const Text = (description: string) => Type.Optional(Type.String({ maxLength: 300, description }));

export const AuditQuery = Type.Object({
  account_id: Text('Administrators and auditors only: another account, or `all`. Default: your own'),
  actor: Text('Id or name of the account that acted'),
  action: Text('operationId of the call'),
  target: Text('Id or name of the resource'),
  outcome: Type.Optional(Outcome),
  from: Text(TIME),
  to: Text(`${TIME}; exclusive`),
  format: Type.Optional(
    Type.Enum(['json', 'jsonl'], {
      description: '`jsonl`: one entry per line; without `limit`, all of them',
    }),
  ),
  ...Paging,
});

export const VerifyQuery = Type.Object({
  head: Text(
    'RANGE:HASH of an earlier call, stored elsewhere; the call verifies that it is still in the log',
  ),
});

export const AuditVerificationView = namedObject('AuditVerification', {
  ok: Type.Boolean({ description: 'Whether all sealed entries are unchanged and present' }),
  ranges: Type.Integer(),
  rows: Type.Integer({ description: 'Number of sealed entries verified' }),
  removed: Type.Integer({ description: 'Number of ranges whose entries expired; their hashes are kept' }),
  unsealed: Type.Integer({ description: 'Number of entries of the last minutes, which are not sealed yet' }),
  head: Type.Union([namedObject('AuditHead', { range: Type.Integer(), hash: Type.String() }), Type.Null()], {
    description: 'The newest hash; store it elsewhere, to detect a replaced log later',
  }),
  fault: textOrNull('Description of the damage; null: none'),
});
