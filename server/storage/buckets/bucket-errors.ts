/** The refusals of buckets. */
import { AppError } from '../../platform/errors.ts';

export function bucketNotFound(name: string): AppError {
  return new AppError('bucket_not_found', `You have no bucket named ${name}`);
}

export function bucketExists(name: string): AppError {
  return new AppError('bucket_exists', `You already have a bucket named ${name}`);
}

export function nameTaken(name: string): AppError {
  return new AppError(
    'bucket_name_taken',
    `The name ${name} belongs, or recently belonged, to a bucket of another account`,
    {
      hint: 'Choose another name: a released name stays reserved for 30 days',
    },
  );
}

export function tooManySettings(): AppError {
  return new AppError('quota_exceeded', 'The settings of all your buckets together may have at most 16 MiB', {
    hint: 'Remove lifecycle rules, policies or CORS rules that you no longer need',
  });
}

export function notEmpty(name: string): AppError {
  return new AppError(
    'bucket_not_empty',
    `The bucket ${name} still contains objects, old versions, delete markers or uploads in progress`,
    { hint: 'Delete them first, or use ?force=true to delete everything in the bucket' },
  );
}

/** Refuses changes of whole buckets to a limited key. */
export function limitedKey(): AppError {
  return new AppError(
    'scope_required',
    'This key is limited to certain buckets and cannot create, change or delete buckets',
  );
}
