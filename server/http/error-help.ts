/** Cause and fix of each error code, for the docs page, which the `type` of problems links to. */
import type { ErrorCode } from '../platform/errors.ts';

interface Help {
  readonly cause: string;
  readonly fix: string;
}

const SEE_ERRORS = 'See `detail` and, for each field, `errors`.';
const LATER = 'Send the request again after the seconds in `Retry-After`.';
const NOT_YOURS = 'The resource does not exist, no longer exists, or belongs to another account.';
const help = (cause: string, fix: string): Help => ({ cause, fix });

export const ERROR_HELP: Readonly<Record<ErrorCode, Help>> = {
  invalid_request: help('A field, parameter or header breaks a rule.', SEE_ERRORS),
  invalid_json: help(
    'The body is not valid JSON, or nested too deeply.',
    '`detail` has the line and column. In a shell, put the body between single quotes.',
  ),
  invalid_multipart: help(
    'The form is truncated or malformed.',
    "Let your HTTP client set the `Content-Type` with its boundary: curl's `-F`, a browser's `FormData`.",
  ),
  invalid_bucket_name: help('The name breaks the rules for buckets.', '`detail` has the rules.'),
  invalid_object_name: help('The name is empty, too long or has control characters.', SEE_ERRORS),
  invalid_cursor: help(
    'The cursor is not from this list.',
    'Take it from the `Link` header of the previous page, or start without a cursor.',
  ),
  query_failed: help(
    'The engine refused the statement.',
    '`detail`, `engine_code` and `position` have its error.',
  ),
  load_failed: help(
    'The file is not a dump of this engine, or violates one of its rules; the database is unchanged.',
    '`detail` says what is wrong with it.',
  ),
  bad_http: help('The request is not valid HTTP/1.1, or its path is not a URL.', 'Fix the client.'),
  invalid_grant: help(
    'The code of a log-in is unknown, used, expired or for another program, or the user who approved it has logged out.',
    'Log in again.',
  ),
  authorization_pending: help('The user has not yet approved or refused the log-in.', LATER),
  slow_down: help('The program polled before its interval was over.', LATER),
  missing_api_key: help(
    'The call needs a key, but none was sent.',
    'Send the key as `X-API-Key` or `Authorization: Bearer`. Registering returns a key.',
  ),
  invalid_api_key: help(
    'The key is mistyped, unknown, expired, rotated or revoked.',
    'Copy it again, or log in to see the current one.',
  ),
  invalid_session: help('The session has expired or was ended.', 'Log in again.'),
  incomplete_session: help(
    'The request has the cookie of a session without its token, or the token without the cookie.',
    'Send both, or log in again.',
  ),
  invalid_ticket: help('The ticket was already used, has expired or is for another path.', 'Get a new one.'),
  invalid_credentials: help(
    'The user name or the password is wrong.',
    'Try again. After several failures, further attempts are slowed down.',
  ),
  invalid_database_password: help(
    'The password of the database is wrong, was rotated, or is missing.',
    'Read the password with `GET /api/databases/{database_id}/credentials`.',
  ),
  insufficient_credits: help(
    'The account does not have enough credits.',
    'Ask an administrator for credits. Stored data can still be read and deleted.',
  ),
  spend_cap_reached: help(
    'The account has spent its cap of this calendar month (UTC).',
    'Raise the cap with `PATCH /api/billing/cap`, ask the administrator who set it, or wait for the next month. ' +
      'Stored data can still be read and deleted.',
  ),
  admin_required: help(
    'The key does not belong to an administrator, or its scopes are limited.',
    'Use another key.',
  ),
  operator_required: help(
    'The call would open the account of another administrator, or of a former one.',
    'Run `cloudlet admin reset-link NAME` on the host.',
  ),
  scope_required: help('The key lacks the scope, or is limited to other buckets.', 'Use a broader key.'),
  password_required: help(
    'The call shows or creates a secret that outlives the session, and the password of the session was given over 15 minutes ago.',
    'Send the password to `POST /api/account/confirm-password`, then repeat the request.',
  ),
  password_change_required: help(
    'An administrator asked for a new password, which the log-in has to set first.',
    'Send the `reset_token` from the response with a new password to `POST /api/reset-password`, within an hour, then log in.',
  ),
  quota_exceeded: help(
    'The quota of the account is used up.',
    'Delete unused resources, or ask an administrator for a higher quota.',
  ),
  account_suspended: help('An administrator suspended the account.', 'Ask an administrator.'),
  cross_site_request: help(
    'A request from another site carried the session cookie.',
    'Use an API key for calls from other origins.',
  ),
  https_required: help(
    'The client would be sent over a network without encryption.',
    'Download it over https, or on the server itself.',
  ),
  registration_closed: help(
    'Registration is closed on this cloud, or by invitation only (`CLOUDLET_REGISTRATION`).',
    'Ask its administrator for an account, or an invitation.',
  ),
  email_not_confirmed: help(
    'A link that opens an account is mailed only to a confirmed e-mail address.',
    'Give the link to the account owner in another way.',
  ),
  mail_not_set: help(
    'This cloud sends no mail (`CLOUDLET_SMTP_URL` is not set).',
    'Ask its administrator instead.',
  ),
  access_denied: help('The user refused the log-in.', 'Log in again.'),
  invalid_link: help(
    'The link was changed, was used, or has expired.',
    'Request a new link: from the owner for a file, from the administrator for a password.',
  ),
  not_found: help('No resource has this path.', '`hint` suggests the intended path.'),
  account_not_found: help('There is no such account, or it was closed.', 'List the accounts.'),
  invitation_not_found: help('There is no invitation with this id.', 'List the invitations.'),
  access_key_not_found: help(NOT_YOURS, 'List the access keys.'),
  login_code_not_found: help(
    'No log-in request has this code, it was decided already, or it is older than 10 minutes.',
    'Compare the code with the one that the program shows.',
  ),
  session_not_found: help(NOT_YOURS, 'List the sessions.'),
  bucket_not_found: help(NOT_YOURS, 'List your buckets, or create the bucket first.'),
  object_not_found: help(NOT_YOURS, 'List the files of the bucket. Paths take ids, not names.'),
  share_not_found: help('You have no shared link with this id, or it was ended.', 'See GET /api/shares.'),
  share_password_required: help(
    'The shared link has a password; the request has no password or a wrong one.',
    'Send the password by HTTP Basic authentication, with any user name: curl -u :PASSWORD.',
  ),
  encryption_key_not_found: help(
    'You have no encryption key with that name.',
    'List your encryption keys, or create the key first.',
  ),
  upload_not_found: help('The upload was completed, aborted or never started.', 'Start a new upload.'),
  selection_not_found: help(
    'The selection has expired, or belongs to another account or bucket.',
    'Choose the files again with `POST /api/buckets/{name}/selections`.',
  ),
  version_not_found: help('The object has no such version, or a delete marker.', 'List its versions.'),
  vm_not_found: help(NOT_YOURS, 'List the virtual machines.'),
  port_not_found: help('The machine has no such published port.', 'List its published ports.'),
  image_not_found: help('There is no such image.', 'List the images.'),
  database_not_found: help(NOT_YOURS, 'List the databases.'),
  point_not_found: help('There is no such recovery point.', 'List the recovery points.'),
  plan_not_found: help('There is no such plan.', 'List the plans.'),
  webhook_not_found: help(NOT_YOURS, 'List the webhooks.'),
  delivery_not_found: help('The delivery does not exist, or no longer does.', 'List the deliveries.'),
  node_not_found: help('The cluster has no node with this id.', 'List the nodes: `GET /api/admin/nodes`.'),
  operation_not_found: help(
    'The operation never existed, is older than 24 hours, or belongs to another key.',
    'Send the request again.',
  ),
  method_not_allowed: help('The path does not support this method.', 'See the `Allow` header.'),
  query_timeout: help(
    'The statement exceeded the time limit.',
    'Make the statement cheaper (an index, a LIMIT), or run it with a driver.',
  ),
  request_timeout: help('The request arrived too slowly.', 'Try again over a faster connection.'),
  username_taken: help('Another account has the user name.', 'Choose another user name.'),
  email_taken: help('Another account has the e-mail address.', 'Choose another address, or log in.'),
  database_exists: help('You have a database with that name.', 'Use that database, or choose another name.'),
  database_not_ready: help(
    'The database is being created or deleted, is suspended, or is in error.',
    'Read its `state` and `state_reason`.',
  ),
  delete_protected: help(
    'The database is protected against deletion.',
    'Set `delete_protection` to false first.',
  ),
  point_in_progress: help(
    'Only one recovery point is made at a time; `point_id` has the current one.',
    'Wait until it is finished, or cancel it.',
  ),
  point_invalid_state: help('The recovery point is in another state.', 'Read its `state`.'),
  target_in_use: help(
    'Another Cloudlet has the lease of the recovery repository, or was killed a moment ago.',
    'Use a separate repository for each cloud. The lease of a killed cloud expires by itself.',
  ),
  target_unavailable: help(
    'The recovery repository cannot be reached, or has lost data.',
    'Mount it; see `state_reason` or the log of Cloudlet for the cause.',
  ),
  recovery_key_taken: help(
    'An administrator confirmed the recovery key, so it is no longer stored here.',
    'Ask that administrator.',
  ),
  bucket_exists: help('You have a bucket with that name.', 'Use that bucket, or choose another name.'),
  encryption_key_exists: help(
    'You have an encryption key with that name.',
    'Use that key, or choose another name.',
  ),
  operation_cancelled: help(
    'The call was cancelled; its effects until then remain, except those of a database statement.',
    'Repeat the call to continue.',
  ),
  operation_not_cancellable: help('The call cannot be cancelled.', 'Wait until the call has ended.'),
  encryption_key_disabled: help('The encryption key is disabled.', 'Enable the key, or use another key.'),
  encryption_key_in_use: help('Stored objects are encrypted with the key.', 'Delete those objects first.'),
  bucket_name_taken: help(
    'A bucket of another account has that name, or had it in the last 30 days.',
    'Choose another name.',
  ),
  bucket_not_empty: help('The bucket still contains objects or versions.', 'Empty it, or add `?force=true`.'),
  object_locked: help(
    'Object lock prevents the removal of a version, or versioning from being turned off.',
    'Wait until the date, or, in the mode GOVERNANCE, delete it by S3 with `x-amz-bypass-governance-retention`.',
  ),
  account_inactive: help(
    'The account is suspended or closed, so links to set a password do not work.',
    'Resume the account first; a closed account is reopened by signing in.',
  ),
  last_administrator: help(
    'The account is the last active administrator.',
    'Make another administrator first: `bin/cloudlet admin create --username NAME` on the host.',
  ),
  administrator_exists: help(
    'There is an administrator already.',
    'Ask the administrator, or run `bin/cloudlet admin create` on the host.',
  ),
  ssh_key_not_found: help('You have no SSH key with this name.', '`GET /api/account/ssh-keys` lists them.'),
  ssh_key_exists: help('You have an SSH key with this name.', 'Delete that key first, or use another name.'),
  snapshot_not_found: help(
    'The machine has no snapshot with this id.',
    '`GET /api/vms/{vm_id}/snapshots` lists them.',
  ),
  vm_not_stopped: help(
    'Only a stopped machine can be deleted, resized, copied to a snapshot or restored from one.',
    'Stop the machine first.',
  ),
  vm_invalid_state: help(
    'The action is not possible in the state of the machine.',
    'See `state` in the response.',
  ),
  vm_not_running: help('The machine is not running.', 'Start it first.'),
  other_nodes_run: help(
    'Other nodes of the cluster are running, which this operation does not allow.',
    'Stop them, and start them again afterwards.',
  ),
  no_tunnel: help('The database does not support tunnels.', 'Use the address in its `connection`.'),
  port_closed: help(
    'No program of the machine answers on that port.',
    'Start the program, or choose the port on which it listens.',
  ),
  vm_locked: help('Another action is running on the machine.', 'Wait until it is finished.'),
  image_not_ready: help(
    'The image is still being imported, or its import failed.',
    'See `state` in the response.',
  ),
  image_in_use: help('The image is used by virtual machines.', 'Delete the machines first.'),
  no_free_address: help(
    'All addresses for virtual machines are in use.',
    'Delete a machine. The operator can widen `CLOUDLET_VM_POOL`.',
  ),
  port_taken: help(
    'Another machine, a program of the host or Cloudlet itself uses the port, or another machine has the name.',
    'Choose another port or name, or leave `public_port` out.',
  ),
  no_free_port: help('All ports reserved for published ports are in use.', 'Remove an unused one.'),
  too_many_ports: help('The account has reached the limit.', 'Remove unused ports.'),
  too_many_access_keys: help('The account has reached the limit.', 'Delete unused keys.'),
  too_many_webhooks: help('The account has reached the limit.', 'Delete unused webhooks.'),
  plan_exists: help('A plan with that name exists.', 'Change that plan, or choose another name.'),
  plan_in_use: help('Accounts use this plan.', 'Assign them another plan first.'),
  transfer_exists: help('The `transfer_id` was used for another adjustment.', 'Choose a new `transfer_id`.'),
  webhook_disabled: help('The webhook is disabled.', 'Enable the webhook with PATCH first.'),
  write_conflict: help('Another request changed the resource at the same time.', 'Send the request again.'),
  idempotency_in_flight: help('The first request with this key is still running.', 'Retry a little later.'),
  job_running: help('The job is already running.', 'Wait until it is finished; GET shows its progress.'),
  node_invalid_state: help(
    'The state of the node does not allow this.',
    'Read the state with `GET /api/admin/nodes`; `detail` names the allowed states.',
  ),
  not_a_cluster: help(
    'This cloud is one process, so it has no nodes to change.',
    'Set `CLOUDLET_NODE_URL` on each node of a cluster.',
  ),
  precondition_failed: help(
    'The object does not match `If-Match` or `If-Unmodified-Since`.',
    'Read the object again, then repeat the request with its current ETag or time.',
  ),
  payload_too_large: help('The body or the file is larger than allowed.', '`detail` states the limit.'),
  unsupported_media_type: help(
    'The call does not accept this `Content-Type`.',
    "Send `Content-Type: application/json`, which curl's `-d` alone does not. Uploads are forms: `-F`.",
  ),
  customer_key_required: help(
    'The object is encrypted with a customer-provided key (SSE-C).',
    'Read the object over S3, with the key in the headers.',
  ),
  range_not_satisfiable: help('The range begins after the end.', '`Content-Range` has the size.'),
  misdirected_request: help(
    'This cloud listens on loopback only and does not serve this `Host`.',
    'Use localhost, or ask the operator to set `CLOUDLET_PUBLIC_URL`.',
  ),
  idempotency_mismatch: help(
    'The Idempotency-Key was used for another request.',
    'Use a new key for a new request.',
  ),
  upgrade_required: help('The path is a WebSocket.', 'Use a WebSocket client.'),
  rate_limited: help('Too many requests, or failed logins, in a short time.', LATER),
  headers_too_large: help('The headers are larger than 16 KiB.', 'Send fewer or shorter ones.'),
  internal_error: help(
    'The server failed unexpectedly.',
    'Try again. The operator finds `request_id` in the log.',
  ),
  data_corrupted: help(
    'Stored bytes are damaged. Damaged bytes are never sent.',
    'Upload the object again. The operator should check the disk.',
  ),
  data_damaged: help(
    'Stored data of this database is damaged, so none of it is returned.',
    'Load its latest dump, or ask the operator for one from a recovery point.',
  ),
  disk_missing: help(
    'The virtual machine ran before, and its disk is not on the host. It is not replaced by a new one.',
    'Ask the operator to put the disk back, or restore the machine from a recovery point.',
  ),
  data_missing: help(
    'The files of this database are missing on the host.',
    'Load its latest dump, or ask the operator to restore the files.',
  ),
  overloaded: help('The cloud is overloaded.', LATER),
  engine_unavailable: help(
    'A program or feature required by machines or databases is missing on this host.',
    '`hint` has the fix.',
  ),
  host_disk_full: help(
    "The host's disk is nearly full, so databases cannot grow. Reading and deleting still work.",
    'Delete data, or ask the operator for a larger disk.',
  ),
  insufficient_capacity: help(
    'This host lacks the capacity for another machine, or for one of that size.',
    'Stop a machine, or use a smaller type: see `startable` of `GET /api/instance-types`.',
  ),
  read_only: help(
    'The disk failed, so writes are refused. Reads still work.',
    'The operator should check the disk and restart Cloudlet.',
  ),
  operation_interrupted: help(
    'Cloudlet, or the node with the machines and databases, stopped before it reported the outcome.',
    'Check whether the call took effect, or repeat it with the same Idempotency-Key.',
  ),
  billing_inconsistent: help(
    'A check found an inconsistency in the ledger, so resources that cost credits cannot start.',
    'The system status shows the operator the reason.',
  ),
  host_unreachable: help(
    'The node of the cluster that has the machines and databases does not answer. Machines go on running; ' +
      'storage, accounts and lists work meanwhile. The call had no effect.',
    LATER,
  ),
  starting: help('Cloudlet is starting: some of its ports are not open yet.', LATER),
  draining: help(
    'This node of the cluster is about to stop, or an administrator drained it.',
    'No action is needed: proxies send requests to the other nodes.',
  ),
  node_cut_off: help(
    'This node of the cluster cannot reach the database.',
    'No action is needed: proxies send requests to the other nodes.',
  ),
  shutting_down: help('Cloudlet is being stopped.', LATER),
  out_of_space: help(
    'The disk of the cloud is full. Nothing was stored.',
    'Delete data, or ask the operator for a larger disk.',
  ),
};
