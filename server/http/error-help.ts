/** Why each error code comes and what to do: for the docs page, to which the `type` of problems leads. */
import type { ErrorCode } from '../platform/errors.ts';

interface Help {
  readonly cause: string;
  readonly fix: string;
}

const SEE_ERRORS = 'See `detail` and, field by field, `errors`.';
const LATER = 'Send the same request again after the seconds of `Retry-After`.';
const NOT_YOURS = 'It does not exist, no longer exists, or belongs to another account.';
const help = (cause: string, fix: string): Help => ({ cause, fix });

export const ERROR_HELP: Readonly<Record<ErrorCode, Help>> = {
  invalid_request: help('A field, parameter or header breaks a rule.', SEE_ERRORS),
  invalid_json: help(
    'The body is not JSON, or nested too deep.',
    '`detail` has the line and column. In a shell, put the body between single quotes.',
  ),
  invalid_multipart: help(
    'The form is cut short or malformed.',
    "Leave the `Content-Type` with its boundary to your HTTP client: curl's `-F`, `FormData` of a browser.",
  ),
  invalid_bucket_name: help('The name breaks the rules for buckets.', '`detail` has the rules.'),
  invalid_object_name: help('The name is empty, too long or has control characters.', SEE_ERRORS),
  invalid_cursor: help(
    'The cursor is not one that this list gave.',
    'Take it from the `Link` header of the page before, or begin without one.',
  ),
  query_failed: help(
    'The engine refused the statement.',
    '`detail` is what it says; `engine_code` and `position` too.',
  ),
  load_failed: help(
    'The file is no dump of this engine, or breaks one of its rules; the database is as it was.',
    '`detail` says what is wrong with it.',
  ),
  bad_http: help('The request is not valid HTTP/1.1, or its path is not a URL.', 'Fix the client.'),
  missing_api_key: help(
    'The call needs a key and none was sent.',
    'Send it as `X-API-Key` or `Authorization: Bearer`. Registering gives you one.',
  ),
  invalid_api_key: help(
    'The key is mistyped, unknown, expired, rotated or revoked.',
    'Copy it again, or log in to see the current one.',
  ),
  invalid_session: help('The session has expired or was ended.', 'Log in again.'),
  invalid_ticket: help('The ticket was used, has expired or is for another machine.', 'Get a new one.'),
  invalid_credentials: help(
    'The user name or the password is wrong.',
    'Try again. After several failures, further attempts are slowed down.',
  ),
  invalid_database_password: help(
    'The password is not that of the database, was rotated, or is missing.',
    'Read it again with `GET /api/databases/{database_id}/credentials`.',
  ),
  insufficient_credits: help(
    'The account does not have enough credits.',
    'Ask an administrator for credits. What the account has stored can be read and deleted meanwhile.',
  ),
  admin_required: help("The key is not an administrator's, or is a limited one.", 'Use another key.'),
  scope_required: help('The key lacks the scope, or is limited to other buckets.', 'Use a broader key.'),
  quota_exceeded: help(
    'The plan of the account allows no more of these.',
    'Delete what is not needed, or ask an administrator for another plan.',
  ),
  account_suspended: help('An administrator suspended the account.', 'Ask an administrator.'),
  cross_site_request: help(
    'A session cookie came with a request that another site made.',
    'Use an API key for calls from elsewhere.',
  ),
  invalid_link: help('The link was changed, was used, or has expired.', 'Ask its owner for a new one.'),
  not_found: help('There is nothing at this path.', '`hint` has the path that was probably meant.'),
  account_not_found: help('There is no such account, or it was closed.', 'List the accounts.'),
  access_key_not_found: help(NOT_YOURS, 'List the access keys.'),
  session_not_found: help(NOT_YOURS, 'List the sessions.'),
  bucket_not_found: help(NOT_YOURS, 'List the buckets; make it first.'),
  object_not_found: help(NOT_YOURS, 'List the files of the bucket. Paths take ids, not names.'),
  version_not_found: help('The object has no such version, or a delete marker.', 'List its versions.'),
  vm_not_found: help(NOT_YOURS, 'List the virtual machines.'),
  image_not_found: help('There is no such image.', 'List the images.'),
  database_not_found: help(NOT_YOURS, 'List the databases.'),
  point_not_found: help('There is no such recovery point.', 'List the recovery points.'),
  plan_not_found: help('There is no such plan.', 'List the plans.'),
  webhook_not_found: help(NOT_YOURS, 'List the webhooks.'),
  delivery_not_found: help('The log of this webhook does not have it, or no longer.', 'List the deliveries.'),
  operation_not_found: help(
    'It was never started, is older than 24 hours, or belongs to another key.',
    'Send the request again.',
  ),
  method_not_allowed: help('The path is right, the method is not.', 'The `Allow` header has those it takes.'),
  query_timeout: help(
    'The statement ran longer than it may.',
    'Make it cheaper (an index, a LIMIT), or run it through a driver.',
  ),
  request_timeout: help('The request came too slowly.', 'Try again over a faster connection.'),
  username_taken: help('Another account has the user name.', 'Choose another.'),
  email_taken: help('Another account has the e-mail address.', 'Choose another, or log in.'),
  database_exists: help('You have a database of that name.', 'Use it, or choose another name.'),
  database_not_ready: help(
    'The database is being made, suspended, deleted or in error.',
    'Read it: `state` and `state_reason` say which.',
  ),
  delete_protected: help(
    'The database is protected against deletion.',
    'Set `delete_protection` to false first.',
  ),
  point_in_progress: help(
    'One recovery point is made at a time; `point_id` names it.',
    'Wait until it is finished, or cancel it.',
  ),
  point_invalid_state: help('The recovery point is in another state.', 'Read it: `state` says which.'),
  target_in_use: help(
    'Another Cloudlet writes to the place for recovery points, or was killed there a moment ago.',
    'Give each cloud a place of its own. The lease of a cloud that was killed expires by itself.',
  ),
  target_unavailable: help(
    'The place for recovery points cannot be reached, or has lost what was there.',
    'Mount it; `state_reason` or the log of Cloudlet has the cause.',
  ),
  recovery_key_taken: help(
    'Somebody has proved to have the recovery key, and it is not kept here any more.',
    'Ask whoever keeps it.',
  ),
  bucket_exists: help('You have a bucket of that name.', 'Use it, or choose another name.'),
  bucket_not_empty: help('The bucket still holds objects or versions.', 'Empty it, or add `?force=true`.'),
  administrator_exists: help(
    'There is an administrator already.',
    'Ask that one, or run `bin/cloudlet admin create` on the machine itself.',
  ),
  vm_not_stopped: help('Only a stopped machine can be deleted.', 'Stop it first.'),
  vm_invalid_state: help('The state of the machine does not allow that.', '`state` in the response has it.'),
  vm_not_running: help('The machine is not running.', 'Start it first.'),
  vm_locked: help('Another action is running on the machine.', 'Wait until it is finished.'),
  image_not_ready: help(
    'The image is still being imported, or its import failed.',
    '`state` in the response says which.',
  ),
  image_in_use: help('Virtual machines use the image.', 'Delete them first.'),
  no_free_address: help(
    'Every address for virtual machines is taken.',
    'Delete a machine. The operator can widen `CLOUDLET_VM_POOL`.',
  ),
  too_many_access_keys: help('The account has reached the limit.', 'Delete some that are not used.'),
  too_many_webhooks: help('The account has reached the limit.', 'Delete some that are not used.'),
  plan_exists: help('There is a plan of that name.', 'Change it, or choose another name.'),
  plan_in_use: help('Accounts are on this plan.', 'Move them to another plan first.'),
  transfer_exists: help('The `transfer_id` was used for another adjustment.', 'Choose a new one.'),
  webhook_disabled: help('The webhook is disabled.', 'Enable it with PATCH first.'),
  write_conflict: help('Another request changed the same thing meanwhile.', 'Send the request again.'),
  idempotency_in_flight: help(
    'The first request with this key is still running.',
    'Send it again a little later.',
  ),
  job_running: help('It is already running.', 'Wait until it is finished; its GET shows the progress.'),
  precondition_failed: help(
    'The object is not what `If-Match` or `If-Unmodified-Since` ask for.',
    'Read it again, then repeat the request with its present ETag or time.',
  ),
  payload_too_large: help('The body or the file is larger than allowed.', '`detail` has the limit.'),
  unsupported_media_type: help(
    'The `Content-Type` is not what the call takes.',
    "Send `Content-Type: application/json`; curl's `-d` alone says otherwise. Uploads are forms: `-F`.",
  ),
  range_not_satisfiable: help('The range begins after the end.', '`Content-Range` has the size.'),
  misdirected_request: help(
    'The `Host` is not one of this cloud, which listens on loopback only.',
    'Call it by localhost, or let the operator set `CLOUDLET_PUBLIC_URL`.',
  ),
  idempotency_mismatch: help('The key was used for another request.', 'A new request needs a new key.'),
  upgrade_required: help('The path is a WebSocket.', 'Use a WebSocket client.'),
  rate_limited: help('Too many requests, or failed logins, in a short time.', LATER),
  headers_too_large: help('The headers are larger than 16 KiB.', 'Send fewer or shorter ones.'),
  internal_error: help(
    'Something went wrong on our side.',
    'Try again. The operator finds `request_id` in the log.',
  ),
  data_corrupted: help(
    'Stored bytes are damaged. Damaged bytes are never sent.',
    'Upload them again. The operator should check the disk.',
  ),
  data_damaged: help(
    'What is stored of this database changed by itself, so nothing of it is shown.',
    'Load its last dump, or ask the operator for one of a recovery point.',
  ),
  data_missing: help(
    'The files of this database are gone from the host.',
    'Load its last dump, or ask the operator to put the files back.',
  ),
  overloaded: help('The cloud has more work than it can handle.', LATER),
  engine_unavailable: help(
    'Something that machines or databases need is missing on this host.',
    '`hint` has the fix.',
  ),
  host_disk_full: help(
    "The host's disk is nearly full, so no database grows. Reading and deleting go on.",
    'Delete something, or ask the operator for a larger disk.',
  ),
  insufficient_capacity: help(
    'This host has no room for another machine, or never for one of that size.',
    'Stop one, or take a smaller type: `startable` of `GET /api/instance-types`.',
  ),
  read_only: help(
    'The disk failed, so writes are refused. Reads still work.',
    'The operator should check the disk and restart Cloudlet.',
  ),
  operation_interrupted: help(
    'Cloudlet ended before the outcome was stored.',
    'Check whether the call had its effect before you repeat it.',
  ),
  billing_inconsistent: help(
    'A check found an error in the ledger, so nothing that costs credits can be started.',
    'The operator finds the reason in the system status.',
  ),
  shutting_down: help('Cloudlet is being stopped.', LATER),
  out_of_space: help(
    'The disk of the cloud is full. Nothing was stored.',
    'Delete something, or ask the operator.',
  ),
};
