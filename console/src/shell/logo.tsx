/** The mark and the name. */
import classes from './shell.module.css';

export function Logo() {
  return (
    <span className={classes.logo}>
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="#0f5f5c" />
        <path
          d="M10.5 22.5a5 5 0 0 1-.6-9.96 6.6 6.6 0 0 1 12.6 1.5 4.3 4.3 0 0 1-.5 8.46z"
          fill="none"
          stroke="#fff"
          strokeWidth="2.2"
          strokeLinejoin="round"
        />
      </svg>
      Cloudlet
    </span>
  );
}
