/** What a tenant is told when a statement that we ran did not come to its end. */
import { AppError } from '../../platform/errors.ts';

export function timedOut(cause: Error): AppError {
  return new AppError('query_timeout', 'The statement ran for too long and was stopped', {
    hint: 'make it smaller, or run it with your own driver',
    cause,
  });
}

export function connectionEnded(title: string, cause: Error): AppError {
  return new AppError('engine_unavailable', `${title} ended the connection`, {
    hint: 'try again',
    retryAfterSeconds: 1,
    cause,
  });
}

export function diskFull(cause: Error): AppError {
  return new AppError('out_of_space', 'The disk of the database server is full', { cause });
}
