import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';

/** Prebuilds the workflow bundle: making it takes over a second, which a worker that comes back cannot spare. */
const workflowsPath = fileURLToPath(new URL('./workflows/index.js', import.meta.url));
const { code } = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('WARN') });
await writeFile(new URL('./workflow-bundle.js', import.meta.url), code);
