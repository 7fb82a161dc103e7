/** Results of host checks, for the operator. */

/**
 * One line of the report of `cloudlet doctor`. `fail`: Cloudlet cannot run. `warn`: it runs, but
 * something is missing or nearly used up.
 */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly subject: string;
  readonly detail: string;
  /** Fix for the operator. */
  readonly fix?: string;
}
