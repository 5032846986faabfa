//! Which queries answer the questions of the runner of jobs?

use engine::ids::{JobId, ScheduleId};
use engine::job::{Job, RestoredPart};
use engine::schedule::{OpenRequest, Schedule, ScheduleContents};

use crate::postgres::PostgresStore;
use crate::{JobReads, ReadAnswer};

impl JobReads for PostgresStore {
    fn running_jobs(&self) -> ReadAnswer<Vec<Job>> {
        unimplemented!()
    }

    fn restored_part(&self, _job: JobId, _part: u32) -> ReadAnswer<Option<RestoredPart>> {
        unimplemented!()
    }

    fn schedules(&self) -> ReadAnswer<Vec<Schedule>> {
        unimplemented!()
    }

    fn schedule_contents(&self, _schedule: ScheduleId) -> ReadAnswer<Option<ScheduleContents>> {
        unimplemented!()
    }

    fn open_requests(&self, _job: JobId, _part: u32) -> ReadAnswer<Option<Vec<OpenRequest>>> {
        unimplemented!()
    }
}
