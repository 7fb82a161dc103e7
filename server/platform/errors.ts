/**
 * Every failure that a caller may see. Domains throw AppError and know nothing of HTTP or S3; the
 * edges look the code up in ERRORS and render it. `detail` is public; `cause` is only ever logged.
 */
export const ERRORS = {
  invalid_request: { http: 400, title: 'Invalid request' },
  invalid_json: { http: 400, title: 'Malformed JSON' },
  invalid_multipart: { http: 400, title: 'Malformed multipart form' },
  invalid_bucket_name: { http: 400, title: 'Invalid bucket name' },
  invalid_object_name: { http: 400, title: 'Invalid object name' },
  invalid_cursor: { http: 400, title: 'Invalid cursor' },
  query_failed: { http: 400, title: 'Query failed' },
  load_failed: { http: 400, title: 'Dump not loaded' },
  bad_http: { http: 400, title: 'Malformed HTTP request' },
  invalid_grant: { http: 400, title: 'Invalid or used code' },
  authorization_pending: { http: 400, title: 'Log-in not yet approved' },
  slow_down: { http: 400, title: 'Polled too soon' },
  missing_api_key: { http: 401, title: 'API key required' },
  share_password_required: { http: 401, title: 'Password required' },
  invalid_api_key: { http: 401, title: 'Invalid API key' },
  invalid_session: { http: 401, title: 'Session ended' },
  incomplete_session: { http: 401, title: 'Incomplete session' },
  invalid_ticket: { http: 401, title: 'Invalid or used ticket' },
  invalid_credentials: { http: 401, title: 'Invalid credentials' },
  invalid_database_password: { http: 401, title: 'Invalid database password' },
  insufficient_credits: { http: 402, title: 'Insufficient credits' },
  spend_cap_reached: { http: 402, title: 'Spend cap reached' },
  admin_required: { http: 403, title: 'Administrator required' },
  operator_required: { http: 403, title: 'Operator on the host required' },
  scope_required: { http: 403, title: 'Key scope does not allow this' },
  password_required: { http: 403, title: 'Password required' },
  password_change_required: { http: 403, title: 'New password required' },
  quota_exceeded: { http: 403, title: 'Quota exceeded' },
  account_suspended: { http: 403, title: 'Account suspended' },
  email_not_confirmed: { http: 409, title: 'E-mail address not confirmed' },
  mail_not_set: { http: 409, title: 'No mail server' },
  registration_closed: { http: 403, title: 'Registration closed' },
  cross_site_request: { http: 403, title: 'Cross-site request refused' },
  invalid_link: { http: 403, title: 'Invalid or expired link' },
  https_required: { http: 403, title: 'HTTPS required' },
  access_denied: { http: 403, title: 'Log-in refused by the user' },
  not_found: { http: 404, title: 'Not found' },
  account_not_found: { http: 404, title: 'Account not found' },
  invitation_not_found: { http: 404, title: 'Invitation not found' },
  share_not_found: { http: 404, title: 'Shared link not found' },
  access_key_not_found: { http: 404, title: 'Access key not found' },
  session_not_found: { http: 404, title: 'Session not found' },
  login_code_not_found: { http: 404, title: 'Code not found' },
  bucket_not_found: { http: 404, title: 'Bucket not found' },
  object_not_found: { http: 404, title: 'Object not found' },
  encryption_key_not_found: { http: 404, title: 'Encryption key not found' },
  upload_not_found: { http: 404, title: 'Upload not found' },
  selection_not_found: { http: 404, title: 'Selection not found' },
  version_not_found: { http: 404, title: 'Version not found' },
  vm_not_found: { http: 404, title: 'Virtual machine not found' },
  port_not_found: { http: 404, title: 'Published port not found' },
  image_not_found: { http: 404, title: 'Image not found' },
  database_not_found: { http: 404, title: 'Database not found' },
  point_not_found: { http: 404, title: 'Recovery point not found' },
  plan_not_found: { http: 404, title: 'Plan not found' },
  webhook_not_found: { http: 404, title: 'Webhook not found' },
  delivery_not_found: { http: 404, title: 'Delivery not found' },
  node_not_found: { http: 404, title: 'Node not found' },
  operation_not_found: { http: 404, title: 'Operation not found' },
  method_not_allowed: { http: 405, title: 'Method not allowed' },
  query_timeout: { http: 408, title: 'Query stopped' },
  request_timeout: { http: 408, title: 'Request too slow' },
  username_taken: { http: 409, title: 'Username taken' },
  email_taken: { http: 409, title: 'E-mail taken' },
  bucket_exists: { http: 409, title: 'Bucket exists' },
  encryption_key_exists: { http: 409, title: 'Encryption key exists' },
  encryption_key_disabled: { http: 409, title: 'Encryption key disabled' },
  encryption_key_in_use: { http: 409, title: 'Encryption key in use' },
  bucket_name_taken: { http: 409, title: 'Bucket name taken' },
  bucket_not_empty: { http: 409, title: 'Bucket not empty' },
  object_locked: { http: 409, title: 'Object locked' },
  ssh_key_not_found: { http: 404, title: 'SSH key not found' },
  ssh_key_exists: { http: 409, title: 'SSH key name taken' },
  snapshot_not_found: { http: 404, title: 'Snapshot not found' },
  vm_not_stopped: { http: 409, title: 'Virtual machine not stopped' },
  vm_invalid_state: { http: 409, title: 'Not possible in this state' },
  vm_not_running: { http: 409, title: 'Virtual machine not running' },
  port_closed: { http: 409, title: 'No program answers on the port' },
  vm_locked: { http: 409, title: 'Another action is running' },
  port_taken: { http: 409, title: 'Port or name taken' },
  too_many_ports: { http: 409, title: 'Too many published ports' },
  no_free_port: { http: 409, title: 'No free port' },
  image_not_ready: { http: 409, title: 'Image not ready' },
  image_in_use: { http: 409, title: 'Image in use' },
  database_exists: { http: 409, title: 'Database exists' },
  other_nodes_run: { http: 409, title: 'Other nodes are running' },
  no_tunnel: { http: 409, title: 'No tunnel to this database' },
  database_not_ready: { http: 409, title: 'Database not ready' },
  delete_protected: { http: 409, title: 'Protected against deletion' },
  point_in_progress: { http: 409, title: 'Recovery point in progress' },
  point_invalid_state: { http: 409, title: 'Not possible in this state' },
  target_in_use: { http: 409, title: 'Recovery repository in use' },
  recovery_key_taken: { http: 409, title: 'Recovery key already confirmed' },
  target_unavailable: { http: 503, title: 'Recovery repository unavailable' },
  no_free_address: { http: 503, title: 'No free address' },
  too_many_access_keys: { http: 409, title: 'Too many access keys' },
  too_many_webhooks: { http: 409, title: 'Too many webhooks' },
  account_inactive: { http: 409, title: 'Account suspended or closed' },
  last_administrator: { http: 409, title: 'Last administrator' },
  administrator_exists: { http: 409, title: 'Administrator exists' },
  plan_exists: { http: 409, title: 'Plan exists' },
  plan_in_use: { http: 409, title: 'Plan in use' },
  transfer_exists: { http: 409, title: 'Transfer id already used' },
  webhook_disabled: { http: 409, title: 'Webhook disabled' },
  write_conflict: { http: 409, title: 'Write conflict' },
  idempotency_in_flight: { http: 409, title: 'Request with this Idempotency-Key still running' },
  job_running: { http: 409, title: 'Already running' },
  operation_cancelled: { http: 409, title: 'Cancelled' },
  operation_not_cancellable: { http: 409, title: 'Cannot be cancelled' },
  node_invalid_state: { http: 409, title: 'Not possible in this state' },
  not_a_cluster: { http: 409, title: 'Not a cluster' },
  precondition_failed: { http: 412, title: 'Precondition failed' },
  payload_too_large: { http: 413, title: 'Payload too large' },
  unsupported_media_type: { http: 415, title: 'Unsupported media type' },
  customer_key_required: { http: 400, title: 'Encrypted with a customer-provided key' },
  range_not_satisfiable: { http: 416, title: 'Range not satisfiable' },
  misdirected_request: { http: 421, title: 'Misdirected request' },
  idempotency_mismatch: { http: 422, title: 'Idempotency key reused with another request' },
  upgrade_required: { http: 426, title: 'WebSocket required' },
  rate_limited: { http: 429, title: 'Too many requests' },
  headers_too_large: { http: 431, title: 'Request headers too large' },
  internal_error: { http: 500, title: 'Internal error' },
  data_corrupted: { http: 500, title: 'Stored data is damaged' },
  data_damaged: { http: 500, title: 'Database data is damaged' },
  disk_missing: { http: 503, title: 'Disk missing' },
  data_missing: { http: 503, title: 'Database data is missing' },
  overloaded: { http: 503, title: 'Overloaded' },
  engine_unavailable: { http: 503, title: 'Engine unavailable' },
  host_disk_full: { http: 503, title: "The host's disk is full" },
  insufficient_capacity: { http: 503, title: 'Host full' },
  read_only: { http: 503, title: 'Store is read-only' },
  operation_interrupted: { http: 503, title: 'Outcome unknown' },
  billing_inconsistent: { http: 503, title: 'Ledger inconsistency' },
  host_unreachable: { http: 503, title: 'Host node unreachable' },
  starting: { http: 503, title: 'Starting' },
  draining: { http: 503, title: 'Draining' },
  node_cut_off: { http: 503, title: 'Node cut off from the database' },
  shutting_down: { http: 503, title: 'Shutting down' },
  out_of_space: { http: 507, title: 'Out of space' },
} as const satisfies Record<string, { http: number; title: string }>;

export type ErrorCode = keyof typeof ERRORS;

export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

export interface ErrorExtras {
  /** The fix for the caller or operator. */
  readonly hint?: string;
  /** Every invalid field. */
  readonly fields?: readonly FieldProblem[];
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Extra response headers that belong to the error itself (`Allow`, `Content-Range`). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Additional members of the response, for programs. Public. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Private: the account that was addressed, for the audit log. */
  readonly accountId?: number | undefined;
  /** Private: logged, never rendered. */
  readonly cause?: unknown;
}

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly fields: readonly FieldProblem[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly extra: Readonly<Record<string, unknown>> | undefined;
  /** Private, so that no printed error reveals whether an account exists. */
  readonly #accountId: number | undefined;

  /** `detail` is the public sentence that names the violated rule. */
  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(detail, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'AppError';
    this.code = code;
    this.hint = extras.hint;
    this.fields = extras.fields;
    this.retryAfterSeconds = extras.retryAfterSeconds;
    this.headers = extras.headers;
    this.extra = extras.extra;
    this.#accountId = extras.accountId;
  }

  /** The account that was addressed, for the audit log only. */
  get accountId(): number | undefined {
    return this.#accountId;
  }
}

/** The host has no space for a database's data; the database itself may be far from its limit. */
export function hostDiskFull(cause?: unknown): AppError {
  return new AppError('host_disk_full', "The host's disk is full; databases cannot grow", {
    hint: 'Delete unused data, which still works (emptying or dropping whole tables frees space at once), or ask the operator for a larger disk',
    cause,
  });
}

/** True if `error` is an AppError, with that code if given. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** `invalid_request` for one field. */
export function invalidField(field: string, message: string): AppError {
  return new AppError('invalid_request', `${field}: ${message}`, { fields: [{ field, message }] });
}

/** Throws `invalid_request` for all problems; does nothing if there are none. */
export function assertFields(problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  const detail = problems.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new AppError('invalid_request', detail, { fields: problems });
}
